// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

/// @notice Sets of accounts that may write to topics. Topics share a set, so a new node is added once, not to each topic.
abstract contract WriterSets {
    /// @notice A set was created.
    event WritersCreated(uint32 indexed writers, address indexed owner);
    /// @notice An account was added to a set, or removed from it.
    event WriterChanged(uint32 indexed writers, address indexed account, address indexed sender, bool allowed);

    /// @notice The sender may not do this.
    error NotAllowed();

    /// @notice The set that contains everyone.
    uint32 internal constant EVERYONE = 0;

    address[] private _owners;
    mapping(uint32 writers => mapping(address account => bool)) private _members;

    constructor() {
        _owners.push(address(0));
    }

    /// @notice Creates a set of accounts. The sender owns it and is always a member.
    /// @return writers The set, at least one.
    function createWriters(address[] calldata accounts) external returns (uint32 writers) {
        writers = uint32(_owners.length);
        _owners.push(msg.sender);
        emit WritersCreated(writers, msg.sender);
        for (uint256 i = 0; i < accounts.length; ++i) {
            _change(writers, accounts[i], true);
        }
    }

    /// @notice Adds an account to a set, or removes it. Every member may.
    function setWriter(uint32 writers, address account, bool allowed) external {
        _checkMember(writers, msg.sender);
        _change(writers, account, allowed);
    }

    /// @notice Whether an account is a member of a set.
    function isMember(uint32 writers, address account) public view returns (bool) {
        return _members[writers][account] || (writers < _owners.length && _owners[writers] == account);
    }

    function _checkMember(uint32 writers, address account) internal view {
        if (!isMember(writers, account)) revert NotAllowed();
    }

    function _change(uint32 writers, address account, bool allowed) private {
        _members[writers][account] = allowed;
        emit WriterChanged(writers, account, msg.sender, allowed);
    }
}
