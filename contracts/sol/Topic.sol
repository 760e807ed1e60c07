// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @notice Everything that is known of a topic.
/// @param topic Address of the topic contract.
/// @param name Name of the topic, UTF-8.
/// @param sender Who opened the topic first.
/// @param createdAt Time of the block in which the topic was opened first, in seconds since the epoch.
/// @param sequence Number of events published so far, which is the sequence of the newest one.
/// @param lastBlock Number of the block with the newest batch, zero before the first.
/// @param closed Whether the topic refuses batches.
struct TopicState {
    address topic;
    string name;
    address sender;
    uint64 createdAt;
    uint64 sequence;
    uint64 lastBlock;
    bool closed;
}

/// @notice One topic: it numbers the events of its batches 1, 2, 3, … and emits them.
/// @dev Runs behind an EIP-1167 proxy. `registry` is immutable, so it lives in the code that all proxies share and
/// costs no storage read; a proxy that someone else deploys in front of this code obeys the same registry.
contract Topic {
    /// @notice One batch of events was published.
    /// @param firstSequence Sequence of the first event; the others follow without a gap.
    /// @param sender Who called the registry.
    /// @param eventsRoot Merkle root over the events, as claimed by the sender.
    /// @param count Number of events, as claimed by the sender.
    /// @param events The encoded events, as given by the sender.
    event EventsPublished(
        uint64 indexed firstSequence,
        address indexed sender,
        bytes32 indexed eventsRoot,
        uint32 count,
        bytes events
    );

    /// @notice Only the registry may call this function.
    error NotRegistry();

    /// @notice The batch was accepted.
    uint8 internal constant ACCEPTED = 0;
    /// @notice The batch was refused: the topic is closed.
    uint8 internal constant TOPIC_CLOSED = 2;
    /// @notice The batch was refused: it has no events.
    uint8 internal constant BATCH_EMPTY = 3;

    /// @dev What a batch reads and writes: one storage slot, so one read and one write a batch.
    struct Head {
        uint64 sequence;
        uint64 lastBlock;
        uint64 createdAt;
        bool closed;
    }

    /// @notice The registry that this topic belongs to.
    address public immutable registry;

    Head private _head;

    /// @notice Who opened the topic first.
    address public sender;

    /// @notice Name of the topic, UTF-8.
    string public name;

    modifier onlyRegistry() {
        if (msg.sender != registry) revert NotRegistry();
        _;
    }

    constructor() {
        registry = msg.sender;
    }

    /// @notice Gives a new topic its name and sender. The registry calls it once, when it creates the topic.
    function initialize(string calldata name_, address sender_) external onlyRegistry {
        _head.createdAt = uint64(block.timestamp);
        sender = sender_;
        name = name_;
    }

    /// @notice Publishes one batch, or says why not.
    /// @return reason Zero when published, else the reason of the registry's `BatchRejected`.
    function append(address publisher, uint32 count, bytes32 eventsRoot, bytes calldata events)
        external
        onlyRegistry
        returns (uint8 reason)
    {
        Head memory head = _head;
        if (head.closed) return TOPIC_CLOSED;
        if (count == 0) return BATCH_EMPTY;
        uint64 firstSequence = head.sequence + 1;
        head.sequence += count;
        head.lastBlock = uint64(block.number);
        _head = head;
        emit EventsPublished(firstSequence, publisher, eventsRoot, count, events);
        return ACCEPTED;
    }

    /// @notice Closes the topic.
    /// @return changed False when it was closed already.
    function close() external onlyRegistry returns (bool changed) {
        changed = !_head.closed;
        if (changed) _head.closed = true;
    }

    /// @notice Opens the topic again, with its history and sequence.
    /// @return changed False when it was open already.
    function reopen() external onlyRegistry returns (bool changed) {
        changed = _head.closed;
        if (changed) _head.closed = false;
    }

    /// @notice Time of the block in which the topic was opened first, in seconds since the epoch.
    function createdAt() external view returns (uint64) {
        return _head.createdAt;
    }

    /// @notice Number of events published so far.
    function sequence() external view returns (uint64) {
        return _head.sequence;
    }

    /// @notice Number of the block with the newest batch, zero before the first.
    function lastBlock() external view returns (uint64) {
        return _head.lastBlock;
    }

    /// @notice Whether the topic refuses batches.
    function closed() external view returns (bool) {
        return _head.closed;
    }

    /// @notice Everything at once.
    function state() external view returns (TopicState memory) {
        Head memory head = _head;
        return TopicState({
            topic: address(this),
            name: name,
            sender: sender,
            createdAt: head.createdAt,
            sequence: head.sequence,
            lastBlock: head.lastBlock,
            closed: head.closed
        });
    }
}
