// Written by tools/compile.mjs from sol/; do not edit.

export const compilerVersion = "0.8.35+commit.47b9dedd.Emscripten.clang";

/** SHA-256 of the sources and the compiler's settings. */
export const sourcesHash = "44468139b1786fb1f79990797775e083cf1ca124e222b4f90ae7f57400d9b06d";

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

export const topicRegistryBytecode = "0x60c0604052346101c457600054680100000000000000008110156101a257600181018060005581101561018c57600080527f290decd9548b62a8d60345a988386fc84ba6bc95484008f6362f93160ef3e5630180546001600160a01b03191690556040516108da8082016001600160401b038111838210176101a2578291611ecf833903906000f080156101b8576001600160a01b0381166080526040517f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000060208201908152606092831b6001600160601b03191660348301526e5af43d82803e903d91602b57fd5bf360881b6048830152603782529181016001600160401b038111828210176101a25760405251902060a052600554680100000000000000008110156101a257600181018060055581101561018c5760056000527f036b6384b5eca791c62761152d0c79bb0604c104a5fb6f4eb0703f3154bb3db00180546001600160a01b0319169055604051611d0590816101ca823960805181610df6015260a051816118740152f35b634e487b7160e01b600052603260045260246000fd5b634e487b7160e01b600052604160045260246000fd5b6040513d6000823e3d90fd5b600080fdfe6080604052600436101561001257600080fd5b60003560e01c80630332022614610a5057806316ef4349146109c4578063319af19b1461096457806345b4903a1461090a57806350008591146107745780639d869eac1461071c578063a0ee92fe1461055c578063c5b151ef14610502578063e4d0755114610403578063ed2e39a7146101cd578063f315f55314610191578063f681338a146101045763fbb601e4146100ab57600080fd5b346100ff5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760206100f56100e7610b6e565b6100ef610ba4565b90611712565b6040519015158152f35b600080fd5b346100ff5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff57602061013d610b81565b73ffffffffffffffffffffffffffffffffffffffff61015a610ba4565b911660005260028252604060002054908115159182610180575b50506040519015158152f35b61018a92506119e4565b8280610174565b346100ff5760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff576020600454604051908152f35b346100ff5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff576004356024356004548083106000146103fb5782810390811161032a575b808210156103f457505b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0610267610251836116e6565b9261025f6040519485611289565b8084526116e6565b0160005b8181106103dd57600454848460005b81518110156103595780830180841161032a576000858210156102fd57600490527f8a35acfbc15ff81a39ae7d344fd709f28e8600b4aa8c65c6b64bfe7fe36bd19b0154600191906102e19073ffffffffffffffffffffffffffffffffffffffff1661135b565b6102eb82856116fe565b526102f681846116fe565b500161027a565b807f4e487b7100000000000000000000000000000000000000000000000000000000602492526032600452fd5b7f4e487b7100000000000000000000000000000000000000000000000000000000600052601160045260246000fd5b506040518091602082016020835281518091526040830190602060408260051b8601019301916000905b82821061039257505050500390f35b919360206103cd827fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc060019597998495030186528851610bc7565b9601920192018594939192610383565b6020906103e86112ca565b8282860101520161026b565b9050610224565b50600061021a565b346100ff5760607ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5761043a610b6e565b610442610ba4565b90604435908115158092036100ff5763ffffffff9061046133826118ae565b16806000526001602052604060002073ffffffffffffffffffffffffffffffffffffffff841660005260205260406000207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff0081541660ff84161790556040519182527fff35e9b47c6e65d935a3245cec9fd919b00fd3bac72201b8308b08404f45413a602073ffffffffffffffffffffffffffffffffffffffff33951693a4005b346100ff5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff5761055461055a913690600401610b2a565b90611621565b005b346100ff5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff576105ab903690600401610b2a565b63ffffffff6000541691600054680100000000000000008110156106ed578060016105db920160005560006115b9565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff33831b921b191617905533837f99415087b6a71591be6ceb31d427f8fd1d3ee2599d2911dce74bf33878e96a44600080a360005b828110156106e257600190600060406106488360051b8601611600565b918781528460205281812073ffffffffffffffffffffffffffffffffffffffff8416825260205220837fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff00825416179055604051838152867fff35e9b47c6e65d935a3245cec9fd919b00fd3bac72201b8308b08404f45413a602073ffffffffffffffffffffffffffffffffffffffff33951693a40161062b565b602084604051908152f35b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b346100ff5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff5761076e61055a913690600401610afc565b90611508565b346100ff5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff576107c66107d7913690600401610afc565b6107d1929192610b5b565b92611967565b6107e3819392936118bf565b73ffffffffffffffffffffffffffffffffffffffff16331480156108e7575b156108bd577fffffffff00000000ffffffffffffffffffffffffffffffffffffffffffffffff7bffffffff00000000000000000000000000000000000000000000000073ffffffffffffffffffffffffffffffffffffffff63ffffffff851695866108ae575b169384600052600260205260c01b169116176040600020556040519182527f1b2b849d5241fb31d8154fa1629a6fab920e7dc7c9e1f416857f8dc4a134bbc060203393a3005b6108b833876118ae565b610868565b7f3d693ada0000000000000000000000000000000000000000000000000000000060005260046000fd5b5063ffffffff8160c01c1615158015610802575061090533826119e4565b610802565b346100ff5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5761096061094c610947610b81565b61135b565b604051918291602083526020830190610bc7565b0390f35b346100ff5760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff576109b661055a913690600401610b2a565b6109be610b5b565b91610d1f565b346100ff5760607ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff57610a13903690600401610b2a565b610a1b610b5b565b9160443567ffffffffffffffff81116100ff5761055a93610a43610a4b923690600401610b2a565b949093610d1f565b611621565b346100ff5760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100ff5760043567ffffffffffffffff81116100ff57610aa2610aa8913690600401610afc565b90611811565b73ffffffffffffffffffffffffffffffffffffffff8116600052600260205260406000205415610af4575b60209073ffffffffffffffffffffffffffffffffffffffff60405191168152f35b506000610ad3565b9181601f840112156100ff5782359167ffffffffffffffff83116100ff57602083818601950101116100ff57565b9181601f840112156100ff5782359167ffffffffffffffff83116100ff576020808501948460051b0101116100ff57565b6024359063ffffffff821682036100ff57565b6004359063ffffffff821682036100ff57565b6004359073ffffffffffffffffffffffffffffffffffffffff821682036100ff57565b6024359073ffffffffffffffffffffffffffffffffffffffff821682036100ff57565b919073ffffffffffffffffffffffffffffffffffffffff835116815260208301519261010060208301528351908161010084015260005b828110610cb757506101209394508163ffffffff60e0601f936000887fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0978901015273ffffffffffffffffffffffffffffffffffffffff604082015116604088015267ffffffffffffffff606082015116606088015267ffffffffffffffff608082015116608088015267ffffffffffffffff60a08201511660a088015260c0810151151560c088015201511660e08501520116010190565b806020809288010151610120828701015201610bfe565b9035907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe1813603018212156100ff570180359067ffffffffffffffff82116100ff576020019181360383136100ff57565b92909163ffffffff8116918261125d575b60005b84811015611255576000610d4c8260051b880188610cce565b91908215801561124a575b6112225773ffffffffffffffffffffffffffffffffffffffff610d7a8483611811565b169182815260026020526040812054801560001461115557508273ffffffffffffffffffffffffffffffffffffffff604051602081017f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000081527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000007f000000000000000000000000000000000000000000000000000000000000000060601b1660348301527f5af43d82803e903d91602b57fd5bf30000000000000000000000000000000000604883015260378252610e53605783611289565b610e5e3689886117ac565b6020815191012091519085f5160361112d57610e78611c80565b60a01b73ffffffffffff00000000000000000000000000004260701b161783825260026020527bffffffff0000000000000000000000000000000000000000000000008860c01b1617604082205582815260036020526040812067ffffffffffffffff851161110057610eeb8154611308565b601f81116110ae575b508482601f8211600114611010578391611005575b508560011b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8760031b1c19161790555b6004549068010000000000000000821015610fd85750610fce600195949392610f8c83887f698fb6c46dc7cb1797ab5d8fcfd30abe64570330398325e18f226ab64abc0406950160045560046115b9565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff87831b921b19161790556040519182918b83526040602084015233966040840191611928565b0390a35b01610d33565b807f4e487b7100000000000000000000000000000000000000000000000000000000602492526041600452fd5b905083013538610f09565b828452602084209187907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016855b81811061109357501061105b575b5050600185811b019055610f3b565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff60f88860031b161c1990850135169055388061104c565b8784013585556001909401936020938401938a93500161103e565b85811115610ef45781835260208320601f870160051c90602088106110f8575b81601f9101920160051c0390835b8281106110ea575050610ef4565b8085600192840155016110dc565b8491506110ce565b6024827f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b807fa9b8c3850000000000000000000000000000000000000000000000000000000060049252fd5b9092915060019493507c0100000000000000000000000000000000000000000000000000000000811661118b575b505050610fd2565b61119533826119e4565b6111c857507f400d41c220ee77ba655ebbb0f9610e0a58d7affb468117cee003f6bb55e4c853339280a35b388080611183565b7ffffffffeffffffffffffffffffffffffffffffffffffffffffffffffffffffff9082845260026020521660408320557f78c9642a3d03eda134c61c56dedb50dbdef9ba0bd43b5df626bbbe9de6e20dee339280a36111c0565b6004827f430f13b3000000000000000000000000000000000000000000000000000000008152fd5b506104008311610d57565b509350505050565b61126733836118ae565b610d30565b610100810190811067ffffffffffffffff8211176106ed57604052565b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff8211176106ed57604052565b604051906112d78261126c565b600060e083828152606060208201528260408201528260608201528260808201528260a08201528260c08201520152565b90600182811c92168015611351575b602083101461132257565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052602260045260246000fd5b91607f1691611317565b73ffffffffffffffffffffffffffffffffffffffff6113786112ca565b911690816000526002602052604060002054908115611502575081600052600360205260406000206113a9826118bf565b90604051936113b78561126c565b8452604051906000908054906113cc82611308565b80855291600181169081156114bd575060011461147f575b5050918161140f73ffffffffffffffffffffffffffffffffffffffff9363ffffffff96950382611289565b602086015216604084015265ffffffffffff8160701c16606084015267ffffffffffffffff8116608084015265ffffffffffff8160401c1660a08401527c01000000000000000000000000000000000000000000000000000000008116151560c084015260c01c1660e082015290565b6000908152602081209092505b8183106114a357505081016020018161140f6113e4565b60018160209294939454838588010152019101919061148c565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001660208087019190915292151560051b8501909201925083915061140f90506113e4565b91505090565b9061151291611967565b9061151d33836119e4565b156108bd577c010000000000000000000000000000000000000000000000000000000082166115b55773ffffffffffffffffffffffffffffffffffffffff7c01000000000000000000000000000000000000000000000000000000009116918260005260026020521760406000205533907f6bbdf92ac78165ad4dbdf564edb3b63f8a7ca85e851364b933ba6bd5c22b24f1600080a3565b5050565b80548210156115d15760005260206000200190600090565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052603260045260246000fd5b3573ffffffffffffffffffffffffffffffffffffffff811681036100ff5790565b9160005b828110156116e05760008160051b850135907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff81863603018212156116dd575090600191850160ff61167582611a55565b169081611685575b505001611625565b604061169082611600565b9181519384520135917fdd0b9a197911f3abd9ae83b57ac91c156e8204f57752a275159245e83ee4456e602073ffffffffffffffffffffffffffffffffffffffff33941692a4388061167d565b80fd5b50915050565b67ffffffffffffffff81116106ed5760051b60200190565b80518210156115d15760209160051b010190565b63ffffffff811691826000526001602052604060002073ffffffffffffffffffffffffffffffffffffffff821660005260205260ff6040600020541692831561175c575b50505090565b6000541192509082611773575b5050388080611756565b909150600080548210156102fd5773ffffffffffffffffffffffffffffffffffffffff9160208280859452200154169116143880611769565b92919267ffffffffffffffff82116106ed57604051916117f460207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f8401160184611289565b8294818452818301116100ff578281602093846000960137010152565b6118329073ffffffffffffffffffffffffffffffffffffffff9236916117ac565b6020815191012060405160208101917fff0000000000000000000000000000000000000000000000000000000000000083523060601b602183015260358201527f00000000000000000000000000000000000000000000000000000000000000006055820152605581526118a7607582611289565b5190201690565b906118b891611712565b156108bd57565b63ffffffff9060a01c16906000916005548110156118fb57602083600573ffffffffffffffffffffffffffffffffffffffff9495522001541690565b6024837f4e487b710000000000000000000000000000000000000000000000000000000081526032600452fd5b601f82602094937fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0938186528686013760008582860101520116010190565b916119728284611811565b9273ffffffffffffffffffffffffffffffffffffffff841660005260026020526040600020549283156119a3575050565b6119e06040519283927fd290b7be000000000000000000000000000000000000000000000000000000008452602060048501526024840191611928565b0390fd5b9063ffffffff8260c01c16918215928315611a30575b508215611a0657505090565b73ffffffffffffffffffffffffffffffffffffffff919250611a2882916118bf565b921691161490565b611a3d9193508290611712565b91386119fa565b3563ffffffff811681036100ff5790565b73ffffffffffffffffffffffffffffffffffffffff611a7382611600565b1660005260026020526040600020548015611c79577c01000000000000000000000000000000000000000000000000000000008116611c7257602082019163ffffffff611abf84611a44565b1615611c6a5763ffffffff611ad384611a44565b169260038402938085046003149015171561032a576060820193611af78584610cce565b91905011611c6157611b0933846119e4565b15611c585767ffffffffffffffff83169263ffffffff611b2883611a44565b16840167ffffffffffffffff811161032a5767ffffffffffffffff9073ffffffffffffffffffffffffffffffffffffffff611b6286611600565b16600052600260205216907fffffffffffffffffffffffffffffffffffff00000000000000000000000000006dffffffffffff00000000000000004360401b16911617176040600020556001611bb783611600565b93019367ffffffffffffffff851161032a5763ffffffff92611c50604092611c09611c027f10ce3704e9d78ff4b046f8ab57c8b10da9bf3ccbcebd6f58e358d1e4de63865896611a44565b9184610cce565b9690918551958695013585521660208401526060604084015273ffffffffffffffffffffffffffffffffffffffff67ffffffffffffffff3399169716956060840191611928565b0390a4600090565b50505050600590565b50505050600490565b505050600390565b5050600290565b5050600190565b33600052600660205260406000205480611cf557506005549081680100000000000000008110156106ed57806001611cbd920160055560056115b9565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff33831b921b191617905533600052600660205281604060002055565b9056fea164736f6c6343000823000a60a08060405234603057336080526108a4908161003682396080518181816102a10152818161043f01526106d10152f35b600080fdfe6080604052600436101561001257600080fd5b60003560e01c806306fdde03146104c25780632b29ba23146103a0578063529d15cc1461035c578063597e1fb51461031557806367e404ce146102c55780637b10399914610256578063806b984f146102125780638b2f5369146101d2578063c19d93fb146100de5763cf09e0d01461008a57600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60606100ce61064e565b015116604051908152f35b600080fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761011561064e565b60405180916020825273ffffffffffffffffffffffffffffffffffffffff815116602083015263ffffffff60e061015d6020840151610100604087015261012086019061053b565b9273ffffffffffffffffffffffffffffffffffffffff604082015116606086015267ffffffffffffffff606082015116608086015267ffffffffffffffff60808201511660a086015267ffffffffffffffff60a08201511660c086015260c08101511515828601520151166101008301520390f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602063ffffffff60e06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60a06100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060405173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602073ffffffffffffffffffffffffffffffffffffffff60406100ce61064e565b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602060c061035061064e565b01511515604051908152f35b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d957602067ffffffffffffffff60806100ce61064e565b346100d95760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95760043573ffffffffffffffffffffffffffffffffffffffff81168091036100d957604051907ff681338a000000000000000000000000000000000000000000000000000000008252306004830152602482015260208160448173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa80156104b65760009061047c575b6020906040519015158152f35b506020813d6020116104ae575b81610496602093836105ca565b810103126100d9576104a960209161060b565b61046f565b3d9150610489565b6040513d6000823e3d90fd5b346100d95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100d95761051460206104fe61064e565b015160405191829160208352602083019061053b565b0390f35b60005b83811061052b5750506000910152565b818101518382015260200161051b565b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f60209361057781518092818752878088019101610518565b0116010190565b610100810190811067ffffffffffffffff82111761059b57604052565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff82111761059b57604052565b519081151582036100d957565b519073ffffffffffffffffffffffffffffffffffffffff821682036100d957565b519067ffffffffffffffff821682036100d957565b600060e060405161065e8161057e565b828152606060208201528260408201528260608201528260808201528260a08201528260c082015201526040517f45b4903a00000000000000000000000000000000000000000000000000000000815230600482015260008160248173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000165afa9081156104b657600091610705575090565b903d8082843e61071581846105ca565b82019160208184031261088f5780519067ffffffffffffffff821161089357016101008184031261088f576040519261074d8461057e565b61075682610618565b8452602082015167ffffffffffffffff811161088b57820181601f8201121561088b5780519067ffffffffffffffff821161085e57604051926107c160207fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f86011601856105ca565b8284526020838301011161085a5782916107e49160208060e09796019101610518565b60208501526107f560408201610618565b604085015261080660608201610639565b606085015261081760808201610639565b608085015261082860a08201610639565b60a085015261083960c0820161060b565b60c085015201519063ffffffff82168203610857575060e082015290565b80fd5b8480fd5b6024857f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b8380fd5b5080fd5b8280fdfea164736f6c6343000823000a";
