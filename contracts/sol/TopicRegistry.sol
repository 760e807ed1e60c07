// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {Topic} from "./Topic.sol";
import {ITopicViews, TopicState} from "./TopicState.sol";
import {WriterSets} from "./WriterSets.sol";

/// @notice Events of one topic to publish together.
/// @param topic Address of the topic contract.
/// @param count Number of events.
/// @param eventsRoot Merkle root over the events.
/// @param events The encoded events. The contracts do not decode them; see wire/src/batch for the codec.
struct Batch {
    address topic;
    uint32 count;
    bytes32 eventsRoot;
    bytes events;
}

/// @notice Opens and closes topics, numbers their events, and emits every log, so that a reader needs one address in its filter.
/// @dev Calls no contract while it publishes, so reentrancy is impossible.
contract TopicRegistry is ITopicViews, WriterSets {
    /// @notice A topic was opened for the first time.
    event TopicOpened(address indexed topic, address indexed sender, uint32 writers, string name);
    /// @notice A closed topic was opened again.
    event TopicReopened(address indexed topic, address indexed sender);
    /// @notice An open topic was closed.
    event TopicClosed(address indexed topic, address indexed sender);
    /// @notice The topic has a new set of writers; zero for everyone.
    event TopicWritersChanged(address indexed topic, address indexed sender, uint32 writers);
    /// @notice A closed topic stayed closed because the sender may not write to it.
    event OpenRejected(address indexed topic, address indexed sender);
    /// @notice One batch of events was published.
    /// @param firstSequence Sequence of the first event; the others follow without a gap.
    /// @param sender The account that called the registry.
    /// @param eventsRoot Merkle root over the events, as claimed by the sender.
    /// @param count Number of events, as claimed by the sender, and at most as many as fit into `events`.
    /// @param events The encoded events, as given by the sender.
    event EventsPublished(
        address indexed topic,
        uint64 indexed firstSequence,
        address indexed sender,
        bytes32 eventsRoot,
        uint32 count,
        bytes events
    );
    /// @notice A batch was skipped.
    /// @param reason The first that applies: 1 unknown topic, 2 topic closed, 3 batch without events, 4 more events than fit into its bytes, 5 sender
    /// may not write to the topic.
    event BatchRejected(address indexed topic, address indexed sender, bytes32 indexed eventsRoot, uint8 reason);

    /// @notice No topic of that name was ever opened.
    error TopicNotFound(string name);
    /// @notice The name is empty or longer than 1,024 bytes.
    error InvalidName();
    /// @notice The topic contract could not be created.
    error TopicNotCreated();
    /// @notice `publishAll` publishes nothing, because one of its batches is refused.
    /// @param topic Topic of the refused batch.
    /// @param reason As for `BatchRejected`.
    error PublishRefused(address topic, uint8 reason);

    uint256 private constant NAME_BYTES_MAX = 1024;
    /// @dev The shortest event: RLP of an empty content and no extensions.
    uint256 private constant EVENT_BYTES_MIN = 3;

    uint8 private constant ACCEPTED = 0;
    uint8 private constant TOPIC_UNKNOWN = 1;
    uint8 private constant TOPIC_CLOSED = 2;
    uint8 private constant BATCH_EMPTY = 3;
    uint8 private constant COUNT_TOO_LARGE = 4;
    uint8 private constant NOT_A_WRITER = 5;

    /// @dev A topic's state in one word: sequence (64 bits from the lowest), last block (48), time of creation (48), owner (32), writers (32), closed
    /// (1). Packed by hand, because the compiler writes a packed struct member by member. The owner is an index into `_accounts` and at least one, so
    /// zero means no topic.
    uint256 private constant LAST_BLOCK_SHIFT = 64;
    uint256 private constant CREATED_AT_SHIFT = 112;
    uint256 private constant OWNER_SHIFT = 160;
    uint256 private constant WRITERS_SHIFT = 192;
    uint256 private constant CLOSED_BIT = 1 << 224;
    uint256 private constant WRITERS_MASK = uint256(type(uint32).max) << WRITERS_SHIFT;
    /// @dev The bits that a batch does not change.
    uint256 private constant STANDING_MASK = ~uint256((1 << CREATED_AT_SHIFT) - 1);

    address private immutable _implementation;
    bytes32 private immutable _proxyCodeHash;

    mapping(address topic => uint256) private _heads;
    mapping(address topic => string) private _names;
    address[] private _topics;
    address[] private _accounts;
    mapping(address account => uint256) private _placeOf;

    constructor() {
        _implementation = address(new Topic());
        _proxyCodeHash = keccak256(_proxyCode(_implementation));
        _accounts.push(address(0));
    }

    /// @notice Opens topics: creates a new one, reopens a closed one with its history, leaves an open one as it is.
    /// @param names Names of topics, UTF-8, 1 to 1,024 bytes each.
    /// @param writers Who may write to newly created topics: a set that the sender belongs to, or zero for everyone.
    function open(string[] calldata names, uint32 writers) public {
        if (writers != EVERYONE) _checkMember(writers, msg.sender);
        for (uint256 i = 0; i < names.length; ++i) {
            _open(names[i], writers);
        }
    }

    /// @notice Closes a topic, or leaves it closed.
    function close(string calldata name) external {
        (address topic, uint256 head) = _find(name);
        if (!_isWriter(head, msg.sender)) revert NotAllowed();
        if (head & CLOSED_BIT != 0) return;
        _heads[topic] = head | CLOSED_BIT;
        emit TopicClosed(topic, msg.sender);
    }

    /// @notice Changes the set of accounts that may write to a topic. Allowed for the owner, and for writers of a topic that is not for everyone.
    /// @param writers A set that the sender belongs to, or zero for everyone.
    function setWriters(string calldata name, uint32 writers) external {
        (address topic, uint256 head) = _find(name);
        bool isAllowed = _ownerOf(head) == msg.sender || (_writersOf(head) != EVERYONE && _isWriter(head, msg.sender));
        if (!isAllowed) revert NotAllowed();
        if (writers != EVERYONE) _checkMember(writers, msg.sender);
        _heads[topic] = (head & ~WRITERS_MASK) | (uint256(writers) << WRITERS_SHIFT);
        emit TopicWritersChanged(topic, msg.sender, writers);
    }

    /// @notice Publishes batches in the order given. Each batch yields exactly one log: `EventsPublished` or `BatchRejected`.
    function publish(Batch[] calldata batches) public {
        for (uint256 i = 0; i < batches.length; ++i) {
            Batch calldata batch = batches[i];
            uint8 reason = _append(batch);
            if (reason != ACCEPTED) emit BatchRejected(batch.topic, msg.sender, batch.eventsRoot, reason);
        }
    }

    /// @notice Publishes all batches, in the order given. Reverts if `publish` would skip one of them.
    function publishAll(Batch[] calldata batches) external {
        for (uint256 i = 0; i < batches.length; ++i) {
            uint8 reason = _append(batches[i]);
            if (reason != ACCEPTED) revert PublishRefused(batches[i].topic, reason);
        }
    }

    /// @notice Opens topics and publishes batches, to these or other topics, in one transaction.
    function openAndPublish(string[] calldata names, uint32 writers, Batch[] calldata batches) external {
        open(names, writers);
        publish(batches);
    }

    /// @notice Address of a topic; zero when no topic of that name was ever opened.
    function topicOf(string calldata name) external view returns (address topic) {
        topic = _addressOf(name);
        if (_heads[topic] == 0) topic = address(0);
    }

    /// @notice Number of topics ever opened.
    function topicCount() external view returns (uint256) {
        return _topics.length;
    }

    /// @notice One page of the topics, in the order of their creation.
    /// @param offset Number of topics to skip.
    /// @param limit Maximum number of topics to return.
    function topics(uint256 offset, uint256 limit) external view returns (TopicState[] memory page) {
        uint256 count = _topics.length;
        uint256 rest = offset < count ? count - offset : 0;
        page = new TopicState[](limit < rest ? limit : rest);
        for (uint256 i = 0; i < page.length; ++i) {
            page[i] = stateOf(_topics[offset + i]);
        }
    }

    /// @inheritdoc ITopicViews
    function stateOf(address topic) public view returns (TopicState memory state) {
        uint256 head = _heads[topic];
        if (head == 0) return state;
        return TopicState({
            topic: topic,
            name: _names[topic],
            sender: _ownerOf(head),
            createdAt: uint48(head >> CREATED_AT_SHIFT),
            sequence: uint64(head),
            lastBlock: uint48(head >> LAST_BLOCK_SHIFT),
            closed: head & CLOSED_BIT != 0,
            writers: _writersOf(head)
        });
    }

    /// @inheritdoc ITopicViews
    function isWriter(address topic, address account) external view returns (bool) {
        uint256 head = _heads[topic];
        return head != 0 && _isWriter(head, account);
    }

    function _open(string calldata name, uint32 writers) private {
        if (bytes(name).length == 0 || bytes(name).length > NAME_BYTES_MAX) revert InvalidName();
        address topic = _addressOf(name);
        uint256 head = _heads[topic];
        if (head == 0) {
            _create(topic, name, writers);
        } else if (head & CLOSED_BIT != 0) {
            if (!_isWriter(head, msg.sender)) {
                emit OpenRejected(topic, msg.sender);
            } else {
                _heads[topic] = head & ~CLOSED_BIT;
                emit TopicReopened(topic, msg.sender);
            }
        }
    }

    function _create(address topic, string calldata name, uint32 writers) private {
        bytes memory code = _proxyCode(_implementation);
        bytes32 salt = keccak256(bytes(name));
        address created;
        assembly ("memory-safe") {
            created := create2(0, add(code, 0x20), mload(code), salt)
        }
        if (created != topic) revert TopicNotCreated();
        _heads[topic] = (uint256(uint48(block.timestamp)) << CREATED_AT_SHIFT) | (_placeOfSender() << OWNER_SHIFT)
            | (uint256(writers) << WRITERS_SHIFT);
        _names[topic] = name;
        _topics.push(topic);
        emit TopicOpened(topic, msg.sender, writers, name);
    }

    /// @dev Copies the events straight from the calldata into the log.
    function _append(Batch calldata batch) private returns (uint8 reason) {
        uint256 head = _heads[batch.topic];
        if (head == 0) return TOPIC_UNKNOWN;
        if (head & CLOSED_BIT != 0) return TOPIC_CLOSED;
        if (batch.count == 0) return BATCH_EMPTY;
        if (uint256(batch.count) * EVENT_BYTES_MIN > batch.events.length) return COUNT_TOO_LARGE;
        if (!_isWriter(head, msg.sender)) return NOT_A_WRITER;
        uint64 before = uint64(head);
        _heads[batch.topic] = (head & STANDING_MASK) | (uint256(uint48(block.number)) << LAST_BLOCK_SHIFT)
            | (before + batch.count);
        emit EventsPublished(batch.topic, before + 1, msg.sender, batch.eventsRoot, batch.count, batch.events);
        return ACCEPTED;
    }

    /// @dev The owner may always write, whatever the set of writers.
    function _isWriter(uint256 head, address account) private view returns (bool) {
        uint32 writers = _writersOf(head);
        return writers == EVERYONE || isMember(writers, account) || _ownerOf(head) == account;
    }

    function _ownerOf(uint256 head) private view returns (address) {
        return _accounts[uint32(head >> OWNER_SHIFT)];
    }

    function _writersOf(uint256 head) private pure returns (uint32) {
        return uint32(head >> WRITERS_SHIFT);
    }

    /// @dev Owners are few and topics many: an index takes 32 bits of the word, an address 160.
    function _placeOfSender() private returns (uint256 place) {
        place = _placeOf[msg.sender];
        if (place != 0) return place;
        place = _accounts.length;
        _accounts.push(msg.sender);
        _placeOf[msg.sender] = place;
    }

    function _find(string calldata name) private view returns (address topic, uint256 head) {
        topic = _addressOf(name);
        head = _heads[topic];
        if (head == 0) revert TopicNotFound(name);
    }

    /// @dev The CREATE2 address of the topic of that name (EIP-1014); avoids a stored map from name to address.
    function _addressOf(string calldata name) private view returns (address) {
        bytes32 salt = keccak256(bytes(name));
        bytes32 hash = keccak256(abi.encodePacked(hex"ff", address(this), salt, _proxyCodeHash));
        return address(uint160(uint256(hash)));
    }

    /// @dev Creation code of an EIP-1167 proxy.
    function _proxyCode(address implementation) private pure returns (bytes memory) {
        return abi.encodePacked(
            hex"3d602d80600a3d3981f3363d3d373d3d3d363d73",
            implementation,
            hex"5af43d82803e903d91602b57fd5bf3"
        );
    }
}
