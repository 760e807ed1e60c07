// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {Topic, TopicState} from "./Topic.sol";

/// @notice Events of one topic, to be published together.
/// @param topic Address of the topic contract.
/// @param count Number of events.
/// @param eventsRoot Merkle root over the events.
/// @param events The encoded events; their codec is described beside the codec's code, the contracts carry bytes.
struct Batch {
    address topic;
    uint32 count;
    bytes32 eventsRoot;
    bytes events;
}

/// @notice Opens, closes and lists topics, and passes batches of events to them.
/// @dev Calls no contract but the topics that it created itself, so nothing can call back.
contract TopicRegistry {
    /// @notice A topic was opened for the first time.
    event TopicOpened(address indexed topic, address indexed sender, string name);
    /// @notice A closed topic was opened again.
    event TopicReopened(address indexed topic, address indexed sender);
    /// @notice An open topic was closed.
    event TopicClosed(address indexed topic, address indexed sender);
    /// @notice A batch was skipped.
    /// @param reason The first that holds: 1 unknown topic, 2 topic closed, 3 batch without events.
    event BatchRejected(address indexed topic, address indexed sender, bytes32 indexed eventsRoot, uint8 reason);

    /// @notice No topic of that name was ever opened.
    error TopicNotFound(string name);
    /// @notice The name is empty or longer than 1,024 bytes.
    error InvalidName();
    /// @notice The topic contract could not be created.
    error TopicNotCreated();

    uint256 private constant NAME_BYTES_MAX = 1024;
    uint8 private constant ACCEPTED = 0;
    uint8 private constant TOPIC_UNKNOWN = 1;

    address private immutable _implementation;
    bytes32 private immutable _proxyCodeHash;

    address[] private _topics;
    mapping(address topic => bool) private _isTopic;

    constructor() {
        _implementation = address(new Topic());
        _proxyCodeHash = keccak256(_proxyCode(_implementation));
    }

    /// @notice Opens a topic: creates it, or opens it again with its history, or leaves it open.
    /// @param name Name of the topic, UTF-8, 1 to 1,024 bytes.
    /// @return topic Address of the topic contract.
    function open(string calldata name) external returns (address topic) {
        if (bytes(name).length == 0 || bytes(name).length > NAME_BYTES_MAX) revert InvalidName();
        topic = _addressOf(name);
        if (!_isTopic[topic]) {
            _create(topic, name);
        } else if (Topic(topic).reopen()) {
            emit TopicReopened(topic, msg.sender);
        }
    }

    /// @notice Closes a topic, or leaves it closed.
    function close(string calldata name) external {
        address topic = topicOf(name);
        if (topic == address(0)) revert TopicNotFound(name);
        if (Topic(topic).close()) emit TopicClosed(topic, msg.sender);
    }

    /// @notice Publishes batches in the order given.
    /// Each batch yields exactly one log: `EventsPublished` of its topic, or `BatchRejected` of this contract.
    function publish(Batch[] calldata batches) external {
        for (uint256 i = 0; i < batches.length; ++i) {
            Batch calldata batch = batches[i];
            uint8 reason = _append(batch);
            if (reason != ACCEPTED) emit BatchRejected(batch.topic, msg.sender, batch.eventsRoot, reason);
        }
    }

    /// @notice Address of a topic, zero when no topic of that name was ever opened.
    function topicOf(string calldata name) public view returns (address topic) {
        topic = _addressOf(name);
        if (!_isTopic[topic]) topic = address(0);
    }

    /// @notice Number of topics ever opened.
    function topicCount() external view returns (uint256) {
        return _topics.length;
    }

    /// @notice One page of the topics, in the order of their creation.
    /// @param offset Number of topics to leave out.
    /// @param limit Number of topics to answer at most.
    function topics(uint256 offset, uint256 limit) external view returns (TopicState[] memory page) {
        uint256 count = _topics.length;
        uint256 rest = offset < count ? count - offset : 0;
        page = new TopicState[](limit < rest ? limit : rest);
        for (uint256 i = 0; i < page.length; ++i) {
            page[i] = Topic(_topics[offset + i]).state();
        }
    }

    /// @notice State of a topic; all zero for an address that is not a topic of this registry.
    function stateOf(address topic) external view returns (TopicState memory state) {
        if (_isTopic[topic]) state = Topic(topic).state();
    }

    function _create(address topic, string calldata name) private {
        bytes memory code = _proxyCode(_implementation);
        bytes32 salt = keccak256(bytes(name));
        address created;
        assembly ("memory-safe") {
            created := create2(0, add(code, 0x20), mload(code), salt)
        }
        if (created != topic) revert TopicNotCreated();
        _topics.push(topic);
        _isTopic[topic] = true;
        Topic(topic).initialize(name, msg.sender);
        emit TopicOpened(topic, msg.sender, name);
    }

    /// @dev The events go straight from the calldata into the call: one copy here, one in the proxy, one in the log.
    function _append(Batch calldata batch) private returns (uint8 reason) {
        if (!_isTopic[batch.topic]) return TOPIC_UNKNOWN;
        return Topic(batch.topic).append(msg.sender, batch.count, batch.eventsRoot, batch.events);
    }

    /// @dev Where CREATE2 puts the topic of that name (EIP-1014); spares a stored map from name to address.
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
