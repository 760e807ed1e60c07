// SPDX-License-Identifier: Apache-2.0
pragma solidity ^0.8.20;

contract Child {
    uint256 public born = block.number;

    function kill() external {
        selfdestruct(payable(msg.sender));
    }
}

/// Does one of each thing that the yardstick asks about.
contract Yardstick {
    event Stored(uint256 indexed key, address indexed by, bytes data);
    event Plain(uint256 number);
    error Refused(uint256 code, string why);

    mapping(uint256 => uint256) public values;
    uint256 public count;

    receive() external payable {}

    function store(uint256 key, uint256 value, bytes calldata data) external {
        values[key] = value;
        count++;
        emit Stored(key, msg.sender, data);
    }

    function emitMany(uint256 howMany) external {
        for (uint256 number = 0; number < howMany; number++) emit Plain(number);
    }

    function failWithReason() external pure {
        revert("it is not allowed");
    }

    function failWithError() external pure {
        revert Refused(7, "custom");
    }

    function failWithPanic() external view returns (uint256) {
        return 1 / (count - count);
    }

    function failSilently() external pure {
        revert();
    }

    function burn() external {
        while (true) count++;
    }

    function spin() external pure {
        while (true) {}
    }

    function deploy(bytes32 salt) external returns (address) {
        return address(new Child{salt: salt}());
    }

    function deployAndKill(bytes32 salt) external payable {
        new Child{salt: salt}().kill();
    }

    function tryFailing() external returns (bool) {
        try this.failAfterWriting() {
            return true;
        } catch {
            emit Plain(99);
            return false;
        }
    }

    function failAfterWriting() external {
        values[1000] = 1;
        emit Plain(1);
        revert("undone");
    }

    function pay(address payable to) external payable {
        to.transfer(msg.value);
    }

    function context() external view returns (uint256, uint256, uint256, address, uint256) {
        return (block.number, block.chainid, block.basefee, msg.sender, block.gaslimit);
    }

    function parentHash() external view returns (bytes32) {
        return blockhash(block.number - 1);
    }

    function recover(bytes32 digest, uint8 v, bytes32 r, bytes32 s) external pure returns (address) {
        return ecrecover(digest, v, r, s);
    }

    function digests(bytes calldata data) external view returns (bytes32, bytes32, bytes20, bytes memory) {
        (bool ok, bytes memory same) = address(4).staticcall(data);
        require(ok);
        return (keccak256(data), sha256(data), ripemd160(data), same);
    }
}
