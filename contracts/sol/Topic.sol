// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {ITopicViews, TopicState} from "./TopicState.sol";

/// @notice One topic as its own contract: shows the topic's state in the registry to other contracts and to explorers.
/// @dev Runs behind an EIP-1167 proxy at the topic's address. It is stateless. `registry` is immutable, so it lives in the code that all proxies
/// share. Anyone can deploy another proxy of this code. Its address is not a topic, so its views return an empty state.
contract Topic {
    /// @notice The registry that this topic belongs to.
    ITopicViews public immutable registry;

    constructor() {
        registry = ITopicViews(msg.sender);
    }

    /// @notice Name of the topic, UTF-8.
    function name() external view returns (string memory) {
        return state().name;
    }

    /// @notice The account that opened the topic first, and owns it.
    function sender() external view returns (address) {
        return state().sender;
    }

    /// @notice Time of the block that first opened the topic, in seconds since the epoch.
    function createdAt() external view returns (uint64) {
        return state().createdAt;
    }

    /// @notice Number of events published so far.
    function sequence() external view returns (uint64) {
        return state().sequence;
    }

    /// @notice Number of the block with the newest batch; zero before the first.
    function lastBlock() external view returns (uint64) {
        return state().lastBlock;
    }

    /// @notice Whether the topic is closed and refuses batches.
    function closed() external view returns (bool) {
        return state().closed;
    }

    /// @notice The set of accounts that may write; zero for everyone.
    function writers() external view returns (uint32) {
        return state().writers;
    }

    /// @notice Whether an account may publish to the topic, close it and open it again.
    function isWriter(address account) external view returns (bool) {
        return registry.isWriter(address(this), account);
    }

    /// @notice The whole state; all zero behind a proxy that the registry did not create.
    function state() public view returns (TopicState memory) {
        return registry.stateOf(address(this));
    }
}
