// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @notice The state of a topic.
/// @param topic Address of the topic contract.
/// @param name Name of the topic, UTF-8.
/// @param sender The account that opened the topic first, and owns it.
/// @param createdAt Time of the block that first opened the topic, in seconds since the epoch.
/// @param sequence Number of events published so far, which is the sequence of the newest one.
/// @param lastBlock Number of the block with the newest batch; zero before the first.
/// @param closed Whether the topic refuses batches.
/// @param writers The set of accounts that may write; zero for everyone.
struct TopicState {
    address topic;
    string name;
    address sender;
    uint64 createdAt;
    uint64 sequence;
    uint64 lastBlock;
    bool closed;
    uint32 writers;
}

/// @notice The registry's views that a topic contract uses.
interface ITopicViews {
    /// @notice State of a topic; all zero for an address that is not a topic of the registry.
    function stateOf(address topic) external view returns (TopicState memory);
    /// @notice Whether an account may publish to a topic, close it and open it again.
    function isWriter(address topic, address account) external view returns (bool);
}
