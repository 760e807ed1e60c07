// Written by tools/compile.mjs from sol/; do not edit.

export const compilerVersion = "0.8.35+commit.47b9dedd.Emscripten.clang";

/** SHA-256 of the sources and the compiler's settings. */
export const sourcesHash = "47d225b6a9c0bc454ebf3181c3679f527a4627d379efa7b8feed74370507f334";

export const topicAbi = [
  {
    "inputs": [],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [],
    "name": "closed",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "createdAt",
    "outputs": [
      {
        "internalType": "uint64",
        "name": "",
        "type": "uint64"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "isWriter",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "lastBlock",
    "outputs": [
      {
        "internalType": "uint64",
        "name": "",
        "type": "uint64"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "name",
    "outputs": [
      {
        "internalType": "string",
        "name": "",
        "type": "string"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "registry",
    "outputs": [
      {
        "internalType": "contract ITopicViews",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "sender",
    "outputs": [
      {
        "internalType": "address",
        "name": "",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "sequence",
    "outputs": [
      {
        "internalType": "uint64",
        "name": "",
        "type": "uint64"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "state",
    "outputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "string",
            "name": "name",
            "type": "string"
          },
          {
            "internalType": "address",
            "name": "sender",
            "type": "address"
          },
          {
            "internalType": "uint64",
            "name": "createdAt",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "sequence",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "lastBlock",
            "type": "uint64"
          },
          {
            "internalType": "bool",
            "name": "closed",
            "type": "bool"
          },
          {
            "internalType": "uint32",
            "name": "writers",
            "type": "uint32"
          }
        ],
        "internalType": "struct TopicState",
        "name": "",
        "type": "tuple"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "writers",
    "outputs": [
      {
        "internalType": "uint32",
        "name": "",
        "type": "uint32"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  }
] as const;

export const topicBytecode = "0x60a08060405234603057336080526108a4908161003682396080518181816102a10152818161043f01526106d10152f35b600080fdfe6080604052600436101561001257600080fd5b60003560e01c806306fdde03146104c25780632b29ba23146103a0578063529d15cc1461035c578063597e1fb51461031557806367e404ce146102c55780637b10399914610256578063806b984f146102125780638b2f5369146101d2578063c19d93fb146100de5763cf09e0d01461008a57600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60606100ce61064e565b015116604051908152f35b600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761011561064e565b60405180916020825273ffffffffffffffffffffffffffffffffffffffff815116602083015263ffffffff60e061015d6020840151610100604087015261012086019061053b565b9273ffffffffffffffffffffffffffffffffffffffff604082015116606086015267ffffffffffffffff606082015116608086015267ffffffffffffffff60808201511660a086015267ffffffffffffffff60a08201511660c086015260c08101511515828601520151166101008301520390f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602063ffffffff60e06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60a06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060405173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602073ffffffffffffffffffffffffffffffffffffffff60406100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060c061035061064e565b01511515604051908152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60806100ce61064e565b346100d95760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95760043573ffffffffffffffffffffffffffffffffffffffff81168091036100d957604051907ff681338a000000000000000000000000000000000000000000000000000000008252306004830152602482015260208160448173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa80156104b65760009061047c575b6020906040519015158152f35b506020813d6020116104ae575b81610496602093836105ca565b810103126100d9576104a960209161060b565b61046f565b3d9150610489565b6040513d6000823e3d90fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761051460206104fe61064e565b015160405191829160208352602083019061053b565b0390f35b60005b83811061052b5750506000910152565b818101518382015260200161051b565b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f60209361057781518092818752878088019101610518565b0116010190565b610100810190811067ffffffffffffffff82111761059b57604052565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff82111761059b57604052565b519081151582036100d957565b519073ffffffffffffffffffffffffffffffffffffffff821682036100d957565b519067ffffffffffffffff821682036100d957565b600060e060405161065e8161057e565b828152606060208201528260408201528260608201528260808201528260a08201528260c082015201526040517f45b4903a00000000000000000000000000000000000000000000000000000000815230600482015260008160248173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa9081156104b657600091610705575090565b903d8082843e61071581846105ca565b82019160208184031261088f5780519067ffffffffffffffff821161089357016101008184031261088f576040519261074d8461057e565b61075682610618565b8452602082015167ffffffffffffffff811161088b57820181601f8201121561088b5780519067ffffffffffffffff821161085e57604051926107c160207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f86011601856105ca565b8284526020838301011161085a5782916107e49160208060e09796019101610518565b60208501526107f560408201610618565b604085015261080660608201610639565b606085015261081760808201610639565b608085015261082860a08201610639565b60a085015261083960c0820161060b565b60c085015201519063ffffffff82168203610857575060e082015290565b80fd5b8480fd5b6024857f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b8380fd5b5080fd5b8280fdfea164736f6c6343000823000a";

export const topicRegistryAbi = [
  {
    "inputs": [],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [],
    "name": "InvalidName",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "NotAllowed",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "internalType": "uint8",
        "name": "reason",
        "type": "uint8"
      }
    ],
    "name": "PublishRefused",
    "type": "error"
  },
  {
    "inputs": [],
    "name": "TopicNotCreated",
    "type": "error"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      }
    ],
    "name": "TopicNotFound",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "bytes32",
        "name": "eventsRoot",
        "type": "bytes32"
      },
      {
        "indexed": false,
        "internalType": "uint8",
        "name": "reason",
        "type": "uint8"
      }
    ],
    "name": "BatchRejected",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "uint64",
        "name": "firstSequence",
        "type": "uint64"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bytes32",
        "name": "eventsRoot",
        "type": "bytes32"
      },
      {
        "indexed": false,
        "internalType": "uint32",
        "name": "count",
        "type": "uint32"
      },
      {
        "indexed": false,
        "internalType": "bytes",
        "name": "events",
        "type": "bytes"
      }
    ],
    "name": "EventsPublished",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      }
    ],
    "name": "OpenRejected",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      }
    ],
    "name": "TopicClosed",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "indexed": false,
        "internalType": "string",
        "name": "name",
        "type": "string"
      }
    ],
    "name": "TopicOpened",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      }
    ],
    "name": "TopicReopened",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      }
    ],
    "name": "TopicWritersChanged",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "sender",
        "type": "address"
      },
      {
        "indexed": false,
        "internalType": "bool",
        "name": "allowed",
        "type": "bool"
      }
    ],
    "name": "WriterChanged",
    "type": "event"
  },
  {
    "anonymous": false,
    "inputs": [
      {
        "indexed": true,
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "indexed": true,
        "internalType": "address",
        "name": "owner",
        "type": "address"
      }
    ],
    "name": "WritersCreated",
    "type": "event"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      }
    ],
    "name": "close",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address[]",
        "name": "accounts",
        "type": "address[]"
      }
    ],
    "name": "createWriters",
    "outputs": [
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "isMember",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "topic",
        "type": "address"
      },
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      }
    ],
    "name": "isWriter",
    "outputs": [
      {
        "internalType": "bool",
        "name": "",
        "type": "bool"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string[]",
        "name": "names",
        "type": "string[]"
      },
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      }
    ],
    "name": "open",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string[]",
        "name": "names",
        "type": "string[]"
      },
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "uint32",
            "name": "count",
            "type": "uint32"
          },
          {
            "internalType": "bytes32",
            "name": "eventsRoot",
            "type": "bytes32"
          },
          {
            "internalType": "bytes",
            "name": "events",
            "type": "bytes"
          }
        ],
        "internalType": "struct Batch[]",
        "name": "batches",
        "type": "tuple[]"
      }
    ],
    "name": "openAndPublish",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "uint32",
            "name": "count",
            "type": "uint32"
          },
          {
            "internalType": "bytes32",
            "name": "eventsRoot",
            "type": "bytes32"
          },
          {
            "internalType": "bytes",
            "name": "events",
            "type": "bytes"
          }
        ],
        "internalType": "struct Batch[]",
        "name": "batches",
        "type": "tuple[]"
      }
    ],
    "name": "publish",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "uint32",
            "name": "count",
            "type": "uint32"
          },
          {
            "internalType": "bytes32",
            "name": "eventsRoot",
            "type": "bytes32"
          },
          {
            "internalType": "bytes",
            "name": "events",
            "type": "bytes"
          }
        ],
        "internalType": "struct Batch[]",
        "name": "batches",
        "type": "tuple[]"
      }
    ],
    "name": "publishAll",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      },
      {
        "internalType": "address",
        "name": "account",
        "type": "address"
      },
      {
        "internalType": "bool",
        "name": "allowed",
        "type": "bool"
      }
    ],
    "name": "setWriter",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      },
      {
        "internalType": "uint32",
        "name": "writers",
        "type": "uint32"
      }
    ],
    "name": "setWriters",
    "outputs": [],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "address",
        "name": "topic",
        "type": "address"
      }
    ],
    "name": "stateOf",
    "outputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "string",
            "name": "name",
            "type": "string"
          },
          {
            "internalType": "address",
            "name": "sender",
            "type": "address"
          },
          {
            "internalType": "uint64",
            "name": "createdAt",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "sequence",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "lastBlock",
            "type": "uint64"
          },
          {
            "internalType": "bool",
            "name": "closed",
            "type": "bool"
          },
          {
            "internalType": "uint32",
            "name": "writers",
            "type": "uint32"
          }
        ],
        "internalType": "struct TopicState",
        "name": "state",
        "type": "tuple"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "topicCount",
    "outputs": [
      {
        "internalType": "uint256",
        "name": "",
        "type": "uint256"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "string",
        "name": "name",
        "type": "string"
      }
    ],
    "name": "topicOf",
    "outputs": [
      {
        "internalType": "address",
        "name": "topic",
        "type": "address"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  },
  {
    "inputs": [
      {
        "internalType": "uint256",
        "name": "offset",
        "type": "uint256"
      },
      {
        "internalType": "uint256",
        "name": "limit",
        "type": "uint256"
      }
    ],
    "name": "topics",
    "outputs": [
      {
        "components": [
          {
            "internalType": "address",
            "name": "topic",
            "type": "address"
          },
          {
            "internalType": "string",
            "name": "name",
            "type": "string"
          },
          {
            "internalType": "address",
            "name": "sender",
            "type": "address"
          },
          {
            "internalType": "uint64",
            "name": "createdAt",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "sequence",
            "type": "uint64"
          },
          {
            "internalType": "uint64",
            "name": "lastBlock",
            "type": "uint64"
          },
          {
            "internalType": "bool",
            "name": "closed",
            "type": "bool"
          },
          {
            "internalType": "uint32",
            "name": "writers",
            "type": "uint32"
          }
        ],
        "internalType": "struct TopicState[]",
        "name": "page",
        "type": "tuple[]"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  }
] as const;

export const topicRegistryBytecode = "0x60c0604052346101c457600054680100000000000000008110156101a257600181018060005581101561018c57600080527f290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e5630180546001600160a01b03191690556040516108da8082016001600160401b038111838210176101a2578291611fbe833903906000f080156101b8576001600160a01b0381166080526040517f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000060208201908152606092831b6001600160601b03191660348301526e5af43d82803e903d91602b57fd5bf360881b6048830152603782529181016001600160401b038111828210176101a25760405251902060a052600554680100000000000000008110156101a257600181018060055581101561018c5760056000527f036b6384b5eca791c62761152d0c79bb0604c104a5fb6f4eb0703f3154bb3db00180546001600160a01b0319169055604051611df490816101ca823960805181610ed9015260a051816119630152f35b634e487b7160e01b600052603260045260246000fd5b634e487b7160e01b600052604160045260246000fd5b6040513d6000823e3d90fd5b600080fdfe6080604052600436101561001257600080fd5b60003560e01c80630332022614610b3357806316ef434914610aa7578063319af19b14610a4757806345b4903a146109ed57806350008591146108575780636efbb19e1461077f5780639d869eac14610727578063a0ee92fe14610567578063c5b151ef1461050d578063e4d075511461040e578063ed2e39a7146101d8578063f315f5531461019c578063f681338a1461010f5763fbb601e4146100b657600080fd5b3461010a5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760206101006100f2610c51565b6100fa610c87565b90611801565b6040519015158152f35b600080fd5b3461010a5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a576020610148610c64565b73ffffffffffffffffffffffffffffffffffffffff610165610c87565b91166000526002825260406000205490811515918261018b575b50506040519015158152f35b6101959250611ad3565b828061017f565b3461010a5760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a576020600454604051908152f35b3461010a5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043560243560045480831060001461040657828103908111610335575b808210156103ff57505b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe061027261025c836117d5565b9261026a604051948561136c565b8084526117d5565b0160005b8181106103e857600454848460005b8151811015610364578083018084116103355760008582101561030857600490527f8a35acfbc15ff81a39ae7d344fd709f28e8600b4aa8c65c6b64bfe7fe36bd19b0154600191906102ec9073ffffffffffffffffffffffffffffffffffffffff1661143e565b6102f682856117ed565b5261030181846117ed565b5001610285565b807f4e487b7100000000000000000000000000000000000000000000000000000000602492526032600452fd5b7f4e487b7100000000000000000000000000000000000000000000000000000000600052601160045260246000fd5b506040518091602082016020835281518091526040830190602060408260051b8601019301916000905b82821061039d57505050500390f35b919360206103d8827fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc060019597998495030186528851610caa565b960192019201859493919261038e565b6020906103f36113ad565b82828601015201610276565b905061022f565b506000610225565b3461010a5760607ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a57610445610c51565b61044d610c87565b906044359081151580920361010a5763ffffffff9061046c338261199d565b16806000526001602052604060002073ffffffffffffffffffffffffffffffffffffffff841660005260205260406000207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0081541660ff84161790556040519182527fff35e9b47c6e65d935a3245cec9fd919b00fd3bac72201b8308b08404f45413a602073ffffffffffffffffffffffffffffffffffffffff33951693a4005b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a5761055f610565913690600401610c0d565b90611744565b005b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a576105b6903690600401610c0d565b63ffffffff6000541691600054680100000000000000008110156106f8578060016105e69201600055600061172c565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff33831b921b191617905533837f99415087b6a71591be6ceb31d427f8fd1d3ee2599d2911dce74bf33878e96a44600080a360005b828110156106ed57600190600060406106538360051b860161165a565b918781528460205281812073ffffffffffffffffffffffffffffffffffffffff8416825260205220837fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff00825416179055604051838152867fff35e9b47c6e65d935a3245cec9fd919b00fd3bac72201b8308b08404f45413a602073ffffffffffffffffffffffffffffffffffffffff33951693a401610636565b602084604051908152f35b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a57610779610565913690600401610bdf565b9061167b565b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a576107ce903690600401610c0d565b60005b8181106107da57005b60ff6107ef6107ea8385876115eb565b611b44565b16806107fe57506001016107d1565b73ffffffffffffffffffffffffffffffffffffffff6108266108218486886115eb565b61165a565b7fbaded532000000000000000000000000000000000000000000000000000000006000521660045260245260446000fd5b3461010a5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a576108a96108ba913690600401610bdf565b6108b4929192610c3e565b92611a56565b6108c6819392936119ae565b73ffffffffffffffffffffffffffffffffffffffff16331480156109ca575b156109a0577fffffffff00000000ffffffffffffffffffffffffffffffffffffffffffffffff7bffffffff00000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff63ffffffff85169586610991575b169384600052600260205260c01b169116176040600020556040519182527f1b2b849d5241fb31d8154fa1629a6fab920e7dc7c9e1f416857f8dc4a134bbc060203393a3005b61099b338761199d565b61094b565b7f3d693ada0000000000000000000000000000000000000000000000000000000060005260046000fd5b5063ffffffff8160c01c16151580156108e557506109e83382611ad3565b6108e5565b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a57610a43610a2f610a2a610c64565b61143e565b604051918291602083526020830190610caa565b0390f35b3461010a5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a57610a99610565913690600401610c0d565b610aa1610c3e565b91610e02565b3461010a5760607ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a57610af6903690600401610c0d565b610afe610c3e565b9160443567ffffffffffffffff811161010a5761056593610b26610b2e923690600401610c0d565b949093610e02565b611744565b3461010a5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc36011261010a5760043567ffffffffffffffff811161010a57610b85610b8b913690600401610bdf565b90611900565b73ffffffffffffffffffffffffffffffffffffffff8116600052600260205260406000205415610bd7575b60209073ffffffffffffffffffffffffffffffffffffffff60405191168152f35b506000610bb6565b9181601f8401121561010a5782359167ffffffffffffffff831161010a576020838186019501011161010a57565b9181601f8401121561010a5782359167ffffffffffffffff831161010a576020808501948460051b01011161010a57565b6024359063ffffffff8216820361010a57565b6004359063ffffffff8216820361010a57565b6004359073ffffffffffffffffffffffffffffffffffffffff8216820361010a57565b6024359073ffffffffffffffffffffffffffffffffffffffff8216820361010a57565b919073ffffffffffffffffffffffffffffffffffffffff835116815260208301519261010060208301528351908161010084015260005b828110610d9a57506101209394508163ffffffff60e0601f936000887fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0978901015273ffffffffffffffffffffffffffffffffffffffff604082015116604088015267ffffffffffffffff606082015116606088015267ffffffffffffffff608082015116608088015267ffffffffffffffff60a08201511660a088015260c0810151151560c088015201511660e08501520116010190565b806020809288010151610120828701015201610ce1565b9035907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe18136030182121561010a570180359067ffffffffffffffff821161010a5760200191813603831361010a57565b92909163ffffffff81169182611340575b60005b84811015611338576000610e2f8260051b880188610db1565b91908215801561132d575b6113055773ffffffffffffffffffffffffffffffffffffffff610e5d8483611900565b169182815260026020526040812054801560001461123857508273ffffffffffffffffffffffffffffffffffffffff604051602081017f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000081527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000007f000000000000000000000000000000000000000000000000000000000000000060601b1660348301527f5af43d82803e903d91602b57fd5bf30000000000000000000000000000000000604883015260378252610f3660578361136c565b610f4136898861189b565b6020815191012091519085f5160361121057610f5b611d6f565b60a01b73ffffffffffff00000000000000000000000000004260701b161783825260026020527bffffffff0000000000000000000000000000000000000000000000008860c01b1617604082205582815260036020526040812067ffffffffffffffff85116111e357610fce81546113eb565b601f8111611191575b508482601f82116001146110f35783916110e8575b508560011b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8760031b1c19161790555b60045490680100000000000000008210156110bb57506110b160019594939261106f83887f698fb6c46dc7cb1797ab5d8fcfd30abe64570330398325e18f226ab64abc04069501600455600461172c565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff87831b921b19161790556040519182918b83526040602084015233966040840191611a17565b0390a35b01610e16565b807f4e487b7100000000000000000000000000000000000000000000000000000000602492526041600452fd5b905083013538610fec565b828452602084209187907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016855b81811061117657501061113e575b5050600185811b01905561101e565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff60f88860031b161c1990850135169055388061112f565b8784013585556001909401936020938401938a935001611121565b85811115610fd75781835260208320601f870160051c90602088106111db575b81601f9101920160051c0390835b8281106111cd575050610fd7565b8085600192840155016111bf565b8491506111b1565b6024827f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b807fa9b8c3850000000000000000000000000000000000000000000000000000000060049252fd5b9092915060019493507c0100000000000000000000000000000000000000000000000000000000811661126e575b5050506110b5565b6112783382611ad3565b6112ab57507f400d41c220ee77ba655ebbb0f9610e0a58d7affb468117cee003f6bb55e4c853339280a35b388080611266565b7ffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffffff9082845260026020521660408320557f78c9642a3d03eda134c61c56dedb50dbdef9ba0bd43b5df626bbbe9de6e20dee339280a36112a3565b6004827f430f13b3000000000000000000000000000000000000000000000000000000008152fd5b506104008311610e3a565b509350505050565b61134a338361199d565b610e13565b610100810190811067ffffffffffffffff8211176106f857604052565b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff8211176106f857604052565b604051906113ba8261134f565b600060e083828152606060208201528260408201528260608201528260808201528260a08201528260c08201520152565b90600182811c92168015611434575b602083101461140557565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052602260045260246000fd5b91607f16916113fa565b73ffffffffffffffffffffffffffffffffffffffff61145b6113ad565b9116908160005260026020526040600020549081156115e55750816000526003602052604060002061148c826119ae565b906040519361149a8561134f565b8452604051906000908054906114af826113eb565b80855291600181169081156115a05750600114611562575b505091816114f273ffffffffffffffffffffffffffffffffffffffff9363ffffffff9695038261136c565b602086015216604084015265ffffffffffff8160701c16606084015267ffffffffffffffff8116608084015265ffffffffffff8160401c1660a08401527c01000000000000000000000000000000000000000000000000000000008116151560c084015260c01c1660e082015290565b6000908152602081209092505b8183106115865750508101602001816114f26114c7565b60018160209294939454838588010152019101919061156f565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001660208087019190915292151560051b850190920192508391506114f290506114c7565b91505090565b919081101561162b5760051b810135907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff818136030182121561010a570190565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052603260045260246000fd5b3573ffffffffffffffffffffffffffffffffffffffff8116810361010a5790565b9061168591611a56565b906116903383611ad3565b156109a0577c010000000000000000000000000000000000000000000000000000000082166117285773ffffffffffffffffffffffffffffffffffffffff7c01000000000000000000000000000000000000000000000000000000009116918260005260026020521760406000205533907f6bbdf92ac78165ad4dbdf564edb3b63f8a7ca85e851364b933ba6bd5c22b24f1600080a3565b5050565b805482101561162b5760005260206000200190600090565b9060005b81811061175457505050565b8061176260019284866115eb565b60ff61176d82611b44565b16908161177d575b505001611748565b60406117888261165a565b9181519384520135917fdd0b9a197911f3abd9ae83b57ac91c156e8204f57752a275159245e83ee4456e602073ffffffffffffffffffffffffffffffffffffffff33941692a43880611775565b67ffffffffffffffff81116106f85760051b60200190565b805182101561162b5760209160051b010190565b63ffffffff811691826000526001602052604060002073ffffffffffffffffffffffffffffffffffffffff821660005260205260ff6040600020541692831561184b575b50505090565b6000541192509082611862575b5050388080611845565b909150600080548210156103085773ffffffffffffffffffffffffffffffffffffffff9160208280859452200154169116143880611858565b92919267ffffffffffffffff82116106f857604051916118e360207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f840116018461136c565b82948184528183011161010a578281602093846000960137010152565b6119219073ffffffffffffffffffffffffffffffffffffffff92369161189b565b6020815191012060405160208101917fff0000000000000000000000000000000000000000000000000000000000000083523060601b602183015260358201527f000000000000000000000000000000000000000000000000000000000000000060558201526055815261199660758261136c565b5190201690565b906119a791611801565b156109a057565b63ffffffff9060a01c16906000916005548110156119ea57602083600573ffffffffffffffffffffffffffffffffffffffff9495522001541690565b6024837f4e487b710000000000000000000000000000000000000000000000000000000081526032600452fd5b601f82602094937fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0938186528686013760008582860101520116010190565b91611a618284611900565b9273ffffffffffffffffffffffffffffffffffffffff84166000526002602052604060002054928315611a92575050565b611acf6040519283927fd290b7be000000000000000000000000000000000000000000000000000000008452602060048501526024840191611a17565b0390fd5b9063ffffffff8260c01c16918215928315611b1f575b508215611af557505090565b73ffffffffffffffffffffffffffffffffffffffff919250611b1782916119ae565b921691161490565b611b2c9193508290611801565b9138611ae9565b3563ffffffff8116810361010a5790565b73ffffffffffffffffffffffffffffffffffffffff611b628261165a565b1660005260026020526040600020548015611d68577c01000000000000000000000000000000000000000000000000000000008116611d6157602082019163ffffffff611bae84611b33565b1615611d595763ffffffff611bc284611b33565b1692600384029380850460031490151715610335576060820193611be68584610db1565b91905011611d5057611bf83384611ad3565b15611d475767ffffffffffffffff83169263ffffffff611c1783611b33565b16840167ffffffffffffffff81116103355767ffffffffffffffff9073ffffffffffffffffffffffffffffffffffffffff611c518661165a565b16600052600260205216907fffffffffffffffffffffffffffffffffffff00000000000000000000000000006dffffffffffff00000000000000004360401b16911617176040600020556001611ca68361165a565b93019367ffffffffffffffff85116103355763ffffffff92611d3f604092611cf8611cf17f10ce3704e9d78ff4b046f8ab57c8b10da9bf3ccbcebd6f58e358d1e4de63865896611b33565b9184610db1565b9690918551958695013585521660208401526060604084015273ffffffffffffffffffffffffffffffffffffffff67ffffffffffffffff3399169716956060840191611a17565b0390a4600090565b50505050600590565b50505050600490565b505050600390565b5050600290565b5050600190565b33600052600660205260406000205480611de457506005549081680100000000000000008110156106f857806001611dac9201600555600561172c565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff33831b921b191617905533600052600660205281604060002055565b9056fea164736f6c6343000823000a60a08060405234603057336080526108a4908161003682396080518181816102a10152818161043f01526106d10152f35b600080fdfe6080604052600436101561001257600080fd5b60003560e01c806306fdde03146104c25780632b29ba23146103a0578063529d15cc1461035c578063597e1fb51461031557806367e404ce146102c55780637b10399914610256578063806b984f146102125780638b2f5369146101d2578063c19d93fb146100de5763cf09e0d01461008a57600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60606100ce61064e565b015116604051908152f35b600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761011561064e565b60405180916020825273ffffffffffffffffffffffffffffffffffffffff815116602083015263ffffffff60e061015d6020840151610100604087015261012086019061053b565b9273ffffffffffffffffffffffffffffffffffffffff604082015116606086015267ffffffffffffffff606082015116608086015267ffffffffffffffff60808201511660a086015267ffffffffffffffff60a08201511660c086015260c08101511515828601520151166101008301520390f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602063ffffffff60e06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60a06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060405173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602073ffffffffffffffffffffffffffffffffffffffff60406100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060c061035061064e565b01511515604051908152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60806100ce61064e565b346100d95760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95760043573ffffffffffffffffffffffffffffffffffffffff81168091036100d957604051907ff681338a000000000000000000000000000000000000000000000000000000008252306004830152602482015260208160448173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa80156104b65760009061047c575b6020906040519015158152f35b506020813d6020116104ae575b81610496602093836105ca565b810103126100d9576104a960209161060b565b61046f565b3d9150610489565b6040513d6000823e3d90fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761051460206104fe61064e565b015160405191829160208352602083019061053b565b0390f35b60005b83811061052b5750506000910152565b818101518382015260200161051b565b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f60209361057781518092818752878088019101610518565b0116010190565b610100810190811067ffffffffffffffff82111761059b57604052565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff82111761059b57604052565b519081151582036100d957565b519073ffffffffffffffffffffffffffffffffffffffff821682036100d957565b519067ffffffffffffffff821682036100d957565b600060e060405161065e8161057e565b828152606060208201528260408201528260608201528260808201528260a08201528260c082015201526040517f45b4903a00000000000000000000000000000000000000000000000000000000815230600482015260008160248173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa9081156104b657600091610705575090565b903d8082843e61071581846105ca565b82019160208184031261088f5780519067ffffffffffffffff821161089357016101008184031261088f576040519261074d8461057e565b61075682610618565b8452602082015167ffffffffffffffff811161088b57820181601f8201121561088b5780519067ffffffffffffffff821161085e57604051926107c160207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f86011601856105ca565b8284526020838301011161085a5782916107e49160208060e09796019101610518565b60208501526107f560408201610618565b604085015261080660608201610639565b606085015261081760808201610639565b608085015261082860a08201610639565b60a085015261083960c0820161060b565b60c085015201519063ffffffff82168203610857575060e082015290565b80fd5b8480fd5b6024857f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b8380fd5b5080fd5b8280fdfea164736f6c6343000823000a";

/** SHA-256 of the registry's code with zeros for its immutables, and the offset and length of each immutable, in bytes. */
export const topicRegistryCode = {
  "hash": "5685d8cf27694dc636d515ce1b2f609fcc4d232bf478be003c2dc0a9642cb95e",
  "immutables": [
    [
      3801,
      32
    ],
    [
      6499,
      32
    ]
  ]
} as const;
