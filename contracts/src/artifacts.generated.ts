// Written by tools/compile.mjs from sol/; do not edit.

export const compilerVersion = "0.8.35+commit.47b9dedd.Emscripten.clang";

/** SHA-256 of the sources and the compiler's settings. */
export const sourcesHash = "9dc8406347b5745720488043b2d7df45e1e703ade74c0abd9fdd43a887ccb370";

export const topicAbi = [
  {
    "inputs": [],
    "stateMutability": "nonpayable",
    "type": "constructor"
  },
  {
    "inputs": [],
    "name": "NotRegistry",
    "type": "error"
  },
  {
    "anonymous": false,
    "inputs": [
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
        "indexed": true,
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
    "inputs": [
      {
        "internalType": "address",
        "name": "publisher",
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
    "name": "append",
    "outputs": [
      {
        "internalType": "uint8",
        "name": "reason",
        "type": "uint8"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "function"
  },
  {
    "inputs": [],
    "name": "close",
    "outputs": [
      {
        "internalType": "bool",
        "name": "changed",
        "type": "bool"
      }
    ],
    "stateMutability": "nonpayable",
    "type": "function"
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
        "internalType": "string",
        "name": "name_",
        "type": "string"
      },
      {
        "internalType": "address",
        "name": "sender_",
        "type": "address"
      }
    ],
    "name": "initialize",
    "outputs": [],
    "stateMutability": "nonpayable",
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
    "name": "reopen",
    "outputs": [
      {
        "internalType": "bool",
        "name": "changed",
        "type": "bool"
      }
    ],
    "stateMutability": "nonpayable",
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
          }
        ],
        "internalType": "struct TopicState",
        "name": "",
        "type": "tuple"
      }
    ],
    "stateMutability": "view",
    "type": "function"
  }
] as const;

export const topicBytecode = "0x60a08060405234603e5733608052610d6490816100448239608051818181610134015281816103d5015281816104aa0152818161055501526108ca0152f35b600080fdfe6080604052600436101561001257600080fd5b60003560e01c806306fdde031461094557806343d726d614610884578063529d15cc1461083e578063597e1fb5146107e557806367e404ce146107935780637ab4339d146104ce5780637b1039991461045f578063806b984f146104165780638e0d2d3f1461033e578063c19d93fb146101e2578063ccc108d7146100ee5763cf09e0d0146100a057600080fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005460801c16604051908152f35b600080fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b8576020600054780100000000000000000000000000000000000000000000000081161515908161018d575b50604051908152f35b7ffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffff1660005582610184565b7fc85d9d6c0000000000000000000000000000000000000000000000000000000060005260046000fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957600060c0604051610221816109ea565b828152606060208201528260408201528260608201528260808201528260a08201520152600054602073ffffffffffffffffffffffffffffffffffffffff6001541660405192610270846109ea565b30845267ffffffffffffffff8481610286610a06565b868301908152604083019586528160608401818760801c16815273ffffffffffffffffffffffffffffffffffffffff6103156080870194848a168652780100000000000000000000000000000000000000000000000060c060a08a0199878d60401c168b52019a1615158a52826040519d8e9d8e52511660208d01525160e060408d01526101008c0190610b4d565b98511660608a015251166080880152511660a0860152511660c084015251151560e08301520390f35b346100e95760807ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760043573ffffffffffffffffffffffffffffffffffffffff811681036100e95760243563ffffffff811681036100e95760643567ffffffffffffffff81116100e9576103bd903690600401610bac565b9073ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b85760209361040b9360443591610bda565b60ff60405191168152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005460401c16604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602060405173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b346100e95760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760043567ffffffffffffffff81116100e95761051d903690600401610bac565b60243573ffffffffffffffffffffffffffffffffffffffff81168091036100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b85777ffffffffffffffff000000000000000000000000000000004260801b166000557fffffffffffffffffffffffff0000000000000000000000000000000000000000600154161760015567ffffffffffffffff8111610764576105df600254610997565b601f81116106f7575b506000601f8211600114610642578192600092610637575b50507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8260011b9260031b1c191617600255600080f35b013590508280610600565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe08216927f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace91805b8581106106df575083600195106106a7575b505050811b01600255005b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff60f88560031b161c1991013516905582808061069c565b9092602060018192868601358155019401910161068a565b818111156105e857601f820160051c906020831061075b575b601f82910160051c039060005b82811061072b5750506105e8565b60008282017f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace015560010161071d565b60009150610710565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602073ffffffffffffffffffffffffffffffffffffffff60015416604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760207801000000000000000000000000000000000000000000000000600054161515604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005416604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b8576020600054780100000000000000000000000000000000000000000000000081161590816109215750604051908152f35b78010000000000000000000000000000000000000000000000001760005582610184565b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95761099361097f610a06565b604051918291602083526020830190610b4d565b0390f35b90600182811c921680156109e0575b60208310146109b157565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052602260045260246000fd5b91607f16916109a6565b60e0810190811067ffffffffffffffff82111761076457604052565b60405190816000600254610a1981610997565b8084529060018116908115610aed5750600114610a72575b5003601f017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016820167ffffffffffffffff81118382101761076457604052565b6002600090815291507f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace5b818310610ad157505081016020017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0610a31565b6020919350806001915483858901015201910190918492610a9d565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001660208581019190915291151560051b840190910191507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe09050610a31565b919082519283825260005b848110610b975750507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f8460006020809697860101520116010190565b80602080928401015182828601015201610b58565b9181601f840112156100e95782359167ffffffffffffffff83116100e957602083818601950101116100e957565b929391936000549178010000000000000000000000000000000000000000000000008316610d4c5763ffffffff16918215610d415767ffffffffffffffff81168381019167ffffffffffffffff8311610d125777ffffffffffffffff00000000000000000000000000000000164360401b6fffffffffffffffff0000000000000000161767ffffffffffffffff9283161760005560010194908511610d12577f72c103d973b1c520b8d9c4764664c68c8100fed0af379d0be6a82e4bd2eb3da7927fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f67ffffffffffffffff73ffffffffffffffffffffffffffffffffffffffff60609589604051988997885260406020890152816040890152888801376000878b880101521698169601168101030190a4600090565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052601160045260246000fd5b505050505050600390565b50505050505060029056fea164736f6c6343000823000a";

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
        "internalType": "string",
        "name": "name",
        "type": "string"
      }
    ],
    "name": "open",
    "outputs": [
      {
        "internalType": "address",
        "name": "topic",
        "type": "address"
      }
    ],
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

export const topicRegistryBytecode = "0x60c080604052346100fd57610da88181016001600160401b038111838210176100db578291611286833903906000f080156100f1576001600160a01b0381166080526040517f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000060208201908152606092831b6001600160601b03191660348301526e5af43d82803e903d91602b57fd5bf360881b60488301526037825291810191906001600160401b038311818410176100db578260405251902060a05261118390816101038239608051816103cc015260a05181610fc60152f35b634e487b7160e01b600052604160045260246000fd5b6040513d6000823e3d90fd5b600080fdfe6080604052600436101561001257600080fd5b6000803560e01c80630332022614610a3b57806345b4903a146109405780639d869eac14610811578063c5b151ef146106d0578063e4dcb06b14610314578063ed2e39a7146100a75763f315f5531461006a57600080fd5b346100a457807ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100a45760209054604051908152f35b80fd5b50346100a45760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100a457600435602435825480831060001461030d578281039081116102e0575b808210156102d957505b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe061014161012b83610eb7565b926101396040519485610c6b565b808452610eb7565b01835b8181106102c2575050825b815181101561023f5780830180841161021257908473ffffffffffffffffffffffffffffffffffffffff610184600494610ecf565b90549060031b1c16604051938480927fc19d93fb0000000000000000000000000000000000000000000000000000000082525afa80156102075760019286916101e5575b506101d38285610f18565b526101de8184610f18565b500161014f565b61020191503d8088833e6101f98183610c6b565b810190610d61565b386101c8565b6040513d87823e3d90fd5b6024857f4e487b710000000000000000000000000000000000000000000000000000000081526011600452fd5b81846040519182916020830160208452825180915260408401602060408360051b870101940192905b82821061027757505050500390f35b919360206102b2827fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc060019597998495030186528851610b0a565b9601920192018594939192610268565b6020906102cd610cac565b82828601015201610144565b90506100fe565b6024847f4e487b710000000000000000000000000000000000000000000000000000000081526011600452fd5b50826100f4565b50346100a45761032336610a73565b801580156106c5575b61069d5773ffffffffffffffffffffffffffffffffffffffff61034f8284610f63565b1691828452600160205260ff604085205416156000146105d5578273ffffffffffffffffffffffffffffffffffffffff604051602081017f3d602d80600a3d3981f3363d3d373d3d3d363d7300000000000000000000000081527fffffffffffffffffffffffffffffffffffffffff0000000000000000000000007f000000000000000000000000000000000000000000000000000000000000000060601b1660348301527f5af43d82803e903d91602b57fd5bf30000000000000000000000000000000000604883015260378252610429605783610c6b565b610434368787610f2c565b6020815191012091519088f516036105ad578354680100000000000000008110156105805780600161046892018655610ecf565b81549060031b9073ffffffffffffffffffffffffffffffffffffffff86831b921b191617905582845260016020526040842060017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff00825416179055823b1561057c576040517f7ab4339d00000000000000000000000000000000000000000000000000000000815260406004820152848180610508604482018787610e57565b336024830152038183885af180156102075784926020967fc3b891fff678ad3fce4d6cebe6c15714818f864fa9c01d74f1cc57a3cc820cc4936105609361056c575b5050604051918291888352339689840191610e57565b0390a35b604051908152f35b8161057691610c6b565b3861054a565b8380fd5b6024857f4e487b710000000000000000000000000000000000000000000000000000000081526041600452fd5b6004847fa9b8c385000000000000000000000000000000000000000000000000000000008152fd5b5050604051917fccc108d700000000000000000000000000000000000000000000000000000000835260208360048184865af18015610690578190610650575b60209350610624575b50610564565b817f78c9642a3d03eda134c61c56dedb50dbdef9ba0bd43b5df626bbbe9de6e20dee339280a33861061e565b50916020813d602011610688575b8161066b60209383610c6b565b81010312610684579161067f602093610d54565b610615565b8280fd5b3d915061065e565b50604051903d90823e3d90fd5b6004837f430f13b3000000000000000000000000000000000000000000000000000000008152fd5b50610400811161032c565b50346100a45760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100a45760043567ffffffffffffffff811161080d573660238201121561080d57806004013567ffffffffffffffff8111610684573660248260051b84010111610684579082907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff5d81360301915b838110156108095760248160051b830101359083821215610805576001918301602481019060ff61079a83611000565b1691826107ab575b5050500161076a565b6107b6606491610e96565b916040519384520135917fdd0b9a197911f3abd9ae83b57ac91c156e8204f57752a275159245e83ee4456e602073ffffffffffffffffffffffffffffffffffffffff33941692a43880806107a2565b8580fd5b8480f35b5080fd5b50346100a45761082036610a73565b9073ffffffffffffffffffffffffffffffffffffffff6108408383610be0565b169182156108ff5750506040517f43d726d600000000000000000000000000000000000000000000000000000000815260208160048186865af19081156108f45783916108ba575b50610891575080f35b33907f6bbdf92ac78165ad4dbdf564edb3b63f8a7ca85e851364b933ba6bd5c22b24f18380a380f35b90506020813d6020116108ec575b816108d560209383610c6b565b81010312610684576108e690610d54565b38610888565b3d91506108c8565b6040513d85823e3d90fd5b61093c6040519283927fd290b7be000000000000000000000000000000000000000000000000000000008452602060048501526024840191610e57565b0390fd5b50346100a45760207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100a45760043573ffffffffffffffffffffffffffffffffffffffff811680910361080d57610999610cac565b90808352600160205260ff6040842054166109c9575b604051602080825281906109c590820185610b0a565b0390f35b600491508290604051928380927fc19d93fb0000000000000000000000000000000000000000000000000000000082525afa908115610a3057826109c59392610a15575b5050386109af565b610a2992503d8091833e6101f98183610c6b565b3880610a0d565b6040513d84823e3d90fd5b50346100a4576020610a55610a4f36610a73565b90610be0565b73ffffffffffffffffffffffffffffffffffffffff60405191168152f35b9060207ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc830112610ae25760043567ffffffffffffffff8111610ae25782602382011215610ae25780600401359267ffffffffffffffff8411610ae25760248483010111610ae2576024019190565b600080fd5b60005b838110610afa5750506000910152565b8181015183820152602001610aea565b907fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f6101009373ffffffffffffffffffffffffffffffffffffffff815116845260c060208201519160e06020870152610b74835180948160e08a015260208a8a019101610ae7565b73ffffffffffffffffffffffffffffffffffffffff604082015116604087015267ffffffffffffffff606082015116606087015267ffffffffffffffff608082015116608087015267ffffffffffffffff60a08201511660a08701520151151560c08501520116010190565b90610bea91610f63565b9073ffffffffffffffffffffffffffffffffffffffff8216600052600160205260ff6040600020541615610c1a57565b60009150565b60e0810190811067ffffffffffffffff821117610c3c57604052565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b90601f7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0910116810190811067ffffffffffffffff821117610c3c57604052565b60405190610cb982610c20565b600060c083828152606060208201528260408201528260608201528260808201528260a08201520152565b519073ffffffffffffffffffffffffffffffffffffffff82168203610ae257565b67ffffffffffffffff8111610c3c57601f017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe01660200190565b519067ffffffffffffffff82168203610ae257565b51908115158203610ae257565b602081830312610ae25780519067ffffffffffffffff8211610ae2570160e081830312610ae25760405191610d9583610c20565b610d9e82610ce4565b8352602082015167ffffffffffffffff8111610ae25782019181601f84011215610ae257825191610dce83610d05565b90610ddc6040519283610c6b565b83825260208486010111610ae257610e0060c093610e4f9560208085019101610ae7565b6020850152610e1160408201610ce4565b6040850152610e2260608201610d3f565b6060850152610e3360808201610d3f565b6080850152610e4460a08201610d3f565b60a085015201610d54565b60c082015290565b601f82602094937fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0938186528686013760008582860101520116010190565b3573ffffffffffffffffffffffffffffffffffffffff81168103610ae25790565b67ffffffffffffffff8111610c3c5760051b60200190565b600054811015610ee9576000805260206000200190600090565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052603260045260246000fd5b8051821015610ee95760209160051b010190565b929192610f3882610d05565b91610f466040519384610c6b565b829481845281830111610ae2578281602093846000960137010152565b610f849073ffffffffffffffffffffffffffffffffffffffff923691610f2c565b6020815191012060405160208101917fff0000000000000000000000000000000000000000000000000000000000000083523060601b602183015260358201527f0000000000000000000000000000000000000000000000000000000000000000605582015260558152610ff9607582610c6b565b5190201690565b73ffffffffffffffffffffffffffffffffffffffff61101e82610e96565b16600052600160205260ff60406000205416156111705773ffffffffffffffffffffffffffffffffffffffff61105382610e96565b1690602081013563ffffffff8116809103610ae25760608201357fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe183360301811215610ae25782019283359367ffffffffffffffff8511610ae257602001928436038413610ae25760006040936111156020968651988997889687957f8e0d2d3f000000000000000000000000000000000000000000000000000000008752336004880152602487015201356044850152608060648501526084840191610e57565b03925af19081156111645760009161112b575090565b6020813d60201161115c575b8161114460209383610c6b565b8101031261080d57519060ff821682036100a4575090565b3d9150611137565b6040513d6000823e3d90fd5b5060019056fea164736f6c6343000823000a60a08060405234603e5733608052610d6490816100448239608051818181610134015281816103d5015281816104aa0152818161055501526108ca0152f35b600080fdfe6080604052600436101561001257600080fd5b60003560e01c806306fdde031461094557806343d726d614610884578063529d15cc1461083e578063597e1fb5146107e557806367e404ce146107935780637ab4339d146104ce5780637b1039991461045f578063806b984f146104165780638e0d2d3f1461033e578063c19d93fb146101e2578063ccc108d7146100ee5763cf09e0d0146100a057600080fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005460801c16604051908152f35b600080fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b8576020600054780100000000000000000000000000000000000000000000000081161515908161018d575b50604051908152f35b7ffffffffffffffffeffffffffffffffffffffffffffffffffffffffffffffffff1660005582610184565b7fc85d9d6c0000000000000000000000000000000000000000000000000000000060005260046000fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957600060c0604051610221816109ea565b828152606060208201528260408201528260608201528260808201528260a08201520152600054602073ffffffffffffffffffffffffffffffffffffffff6001541660405192610270846109ea565b30845267ffffffffffffffff8481610286610a06565b868301908152604083019586528160608401818760801c16815273ffffffffffffffffffffffffffffffffffffffff6103156080870194848a168652780100000000000000000000000000000000000000000000000060c060a08a0199878d60401c168b52019a1615158a52826040519d8e9d8e52511660208d01525160e060408d01526101008c0190610b4d565b98511660608a015251166080880152511660a0860152511660c084015251151560e08301520390f35b346100e95760807ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760043573ffffffffffffffffffffffffffffffffffffffff811681036100e95760243563ffffffff811681036100e95760643567ffffffffffffffff81116100e9576103bd903690600401610bac565b9073ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b85760209361040b9360443591610bda565b60ff60405191168152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005460401c16604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602060405173ffffffffffffffffffffffffffffffffffffffff7f0000000000000000000000000000000000000000000000000000000000000000168152f35b346100e95760407ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760043567ffffffffffffffff81116100e95761051d903690600401610bac565b60243573ffffffffffffffffffffffffffffffffffffffff81168091036100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b85777ffffffffffffffff000000000000000000000000000000004260801b166000557fffffffffffffffffffffffff0000000000000000000000000000000000000000600154161760015567ffffffffffffffff8111610764576105df600254610997565b601f81116106f7575b506000601f8211600114610642578192600092610637575b50507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff8260011b9260031b1c191617600255600080f35b013590508280610600565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe08216927f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace91805b8581106106df575083600195106106a7575b505050811b01600255005b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff60f88560031b161c1991013516905582808061069c565b9092602060018192868601358155019401910161068a565b818111156105e857601f820160051c906020831061075b575b601f82910160051c039060005b82811061072b5750506105e8565b60008282017f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace015560010161071d565b60009150610710565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052604160045260246000fd5b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602073ffffffffffffffffffffffffffffffffffffffff60015416604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95760207801000000000000000000000000000000000000000000000000600054161515604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e957602067ffffffffffffffff60005416604051908152f35b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95773ffffffffffffffffffffffffffffffffffffffff7f00000000000000000000000000000000000000000000000000000000000000001633036101b8576020600054780100000000000000000000000000000000000000000000000081161590816109215750604051908152f35b78010000000000000000000000000000000000000000000000001760005582610184565b346100e95760007ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffc3601126100e95761099361097f610a06565b604051918291602083526020830190610b4d565b0390f35b90600182811c921680156109e0575b60208310146109b157565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052602260045260246000fd5b91607f16916109a6565b60e0810190811067ffffffffffffffff82111761076457604052565b60405190816000600254610a1981610997565b8084529060018116908115610aed5750600114610a72575b5003601f017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe016820167ffffffffffffffff81118382101761076457604052565b6002600090815291507f405787fa12a823e0f2b7631cc41b3ba8828b3321ca811111fa75cd3aa3bb5ace5b818310610ad157505081016020017fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0610a31565b6020919350806001915483858901015201910190918492610a9d565b7fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff001660208581019190915291151560051b840190910191507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe09050610a31565b919082519283825260005b848110610b975750507fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f8460006020809697860101520116010190565b80602080928401015182828601015201610b58565b9181601f840112156100e95782359167ffffffffffffffff83116100e957602083818601950101116100e957565b929391936000549178010000000000000000000000000000000000000000000000008316610d4c5763ffffffff16918215610d415767ffffffffffffffff81168381019167ffffffffffffffff8311610d125777ffffffffffffffff00000000000000000000000000000000164360401b6fffffffffffffffff0000000000000000161767ffffffffffffffff9283161760005560010194908511610d12577f72c103d973b1c520b8d9c4764664c68c8100fed0af379d0be6a82e4bd2eb3da7927fffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffe0601f67ffffffffffffffff73ffffffffffffffffffffffffffffffffffffffff60609589604051988997885260406020890152816040890152888801376000878b880101521698169601168101030190a4600090565b7f4e487b7100000000000000000000000000000000000000000000000000000000600052601160045260246000fd5b505050505050600390565b50505050505060029056fea164736f6c6343000823000a";
