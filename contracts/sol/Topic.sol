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

    uint256 private constant LAST_BLOCK_SHIFT = 64;
    uint256 private constant CREATED_AT_SHIFT = 128;
    uint256 private constant CREATED_AT_MASK = uint256(type(uint64).max) << CREATED_AT_SHIFT;
    uint256 private constant CLOSED_BIT = 1 << 192;

    /// @notice The batch was accepted.
    uint8 internal constant ACCEPTED = 0;
    /// @notice The batch was refused: the topic is closed.
    uint8 internal constant TOPIC_CLOSED = 2;
    /// @notice The batch was refused: it has no events.
    uint8 internal constant BATCH_EMPTY = 3;

    /// @notice The registry that this topic belongs to.
    address public immutable registry;

    /// @dev What a batch reads and writes: sequence (64 bits from the lowest), last block (64), time of creation (64),
    /// closed (1). Packed by hand, because the compiler writes a packed struct member by member: three storage writes
    /// a batch instead of one.
    uint256 private _head;

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
        _head = uint256(uint64(block.timestamp)) << CREATED_AT_SHIFT;
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
        uint256 head = _head;
        if (head & CLOSED_BIT != 0) return TOPIC_CLOSED;
        if (count == 0) return BATCH_EMPTY;
        uint64 before = uint64(head);
        // An open topic: the closed bit is zero and stays so.
        _head = (head & CREATED_AT_MASK) | (uint256(uint64(block.number)) << LAST_BLOCK_SHIFT) | (before + count);
        emit EventsPublished(before + 1, publisher, eventsRoot, count, events);
        return ACCEPTED;
    }

    /// @notice Closes the topic.
    /// @return changed False when it was closed already.
    function close() external onlyRegistry returns (bool changed) {
        uint256 head = _head;
        changed = head & CLOSED_BIT == 0;
        if (changed) _head = head | CLOSED_BIT;
    }

    /// @notice Opens the topic again, with its history and sequence.
    /// @return changed False when it was open already.
    function reopen() external onlyRegistry returns (bool changed) {
        uint256 head = _head;
        changed = head & CLOSED_BIT != 0;
        if (changed) _head = head & ~CLOSED_BIT;
    }

    /// @notice Time of the block in which the topic was opened first, in seconds since the epoch.
    function createdAt() external view returns (uint64) {
        return uint64(_head >> CREATED_AT_SHIFT);
    }

    /// @notice Number of events published so far.
    function sequence() external view returns (uint64) {
        return uint64(_head);
    }

    /// @notice Number of the block with the newest batch, zero before the first.
    function lastBlock() external view returns (uint64) {
        return uint64(_head >> LAST_BLOCK_SHIFT);
    }

    /// @notice Whether the topic refuses batches.
    function closed() external view returns (bool) {
        return _head & CLOSED_BIT != 0;
    }

    /// @notice Everything at once.
    function state() external view returns (TopicState memory) {
        uint256 head = _head;
        return TopicState({
            topic: address(this),
            name: name,
            sender: sender,
            createdAt: uint64(head >> CREATED_AT_SHIFT),
            sequence: uint64(head),
            lastBlock: uint64(head >> LAST_BLOCK_SHIFT),
            closed: head & CLOSED_BIT != 0
        });
    }
}
