// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.35;

import {MerkleProof} from "@openzeppelin/contracts/utils/cryptography/MerkleProof.sol";

/// @notice How another contract verifies that an event is in a batch with a known root.
/// @dev A root in a log proves nothing by itself: the registry checks neither count nor root. Use only a root from a reader that decoded the batch and
/// checked count and root, as verifyProof and verifyCompactProof do.
contract EventVerifier {
    /// @param path The sibling hashes of the event's proof, from its leaf up.
    /// @param eventsRoot Root of the batch.
    /// @param event_ RLP of the list of the event's index in its batch, its content and its extensions.
    function isInBatch(bytes32[] calldata path, bytes32 eventsRoot, bytes calldata event_)
        external
        pure
        returns (bool)
    {
        // Hashed twice, so that no inner node of the tree can pass for an event.
        bytes32 leaf = keccak256(bytes.concat(keccak256(event_)));
        return MerkleProof.verifyCalldata(path, eventsRoot, leaf);
    }
}
