// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {ITopicViews, TopicState} from "./TopicState.sol";

/// @notice One topic as a contract of its own: what the registry knows of it, for other contracts and for explorers.
/// @dev Runs behind an EIP-1167 proxy at the topic's address. It keeps no state and changes none. `registry` is
/// immutable, so it lives in the code that all proxies share; a proxy that someone else deploys in front of this code
/// answers for an address that is no topic.
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

    /// @notice Who opened the topic first, and owns it.
    function sender() external view returns (address) {
        return state().sender;
    }

    /// @notice Time of the block in which the topic was opened first, in seconds since the epoch.
    function createdAt() external view returns (uint64) {
        return state().createdAt;
    }

    /// @notice Number of events published so far.
    function sequence() external view returns (uint64) {
        return state().sequence;
    }

    /// @notice Number of the block with the newest batch, zero before the first.
    function lastBlock() external view returns (uint64) {
        return state().lastBlock;
    }

    /// @notice Whether the topic refuses batches.
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

    /// @notice Everything at once; all zero behind a proxy that the registry did not create.
    function state() public view returns (TopicState memory) {
        return registry.stateOf(address(this));
    }
}
