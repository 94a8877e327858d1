import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 4: Multi-round-trip requests. */
export const section4: readonly ProtocolRequirement[] = [
  {
    id: 'R4.01',
    source: 'MRTR',
    level: 'MUST',
    text: "A server's requests for input reach a modern client only as inputRequests of an input_required result.",
  },
  {
    id: 'R4.02',
    source: 'MRTR',
    level: 'MUST',
    text: "Only tools/call, prompts/get and resources/read get input_required results. A server's request for input during any other request gets an error.",
  },
  {
    id: 'R4.03',
    source: 'MRTR',
    level: 'MUST',
    text: 'Every input_required result has inputRequests or requestState.',
  },
  {
    id: 'R4.04',
    source: 'MRTR',
    level: 'MUST',
    text: 'The keys of inputRequests are unique within a request. Each value has a method and params, but no JSON-RPC id.',
  },
  {
    id: 'R4.05',
    source: 'MRTR',
    level: 'MUST',
    text: 'The gateway offers a server only the client capabilities that the request declares. If the server needs another capability, the request gets -32021.',
  },
  {
    id: 'R4.06',
    source: 'MRTR',
    level: 'MUST',
    text: 'requestState is protected and bound to its principal, request and expiry. An invalid requestState gets -32602.',
  },
  {
    id: 'R4.07',
    source: 'MRTR',
    level: 'MUST',
    text: 'The requestState of a modern server is returned to that server byte for byte.',
  },
  {
    id: 'R4.08',
    source: 'MRTR',
    level: 'MUST',
    text: 'If the server sent no requestState, the retry to the server does not contain one either.',
  },
  {
    id: 'R4.09',
    source: 'MRTR',
    level: 'MUST',
    text: 'A retry may arrive at another instance. The gateway then finds the owner of the suspended call, or reports that the call is lost.',
  },
  {
    id: 'R4.10',
    source: 'MRTR',
    level: 'SHOULD',
    text: 'Unknown keys in inputResponses are ignored, and missing inputs are requested again.',
  },
  {
    id: 'R4.11',
    source: 'MRTR',
    level: 'MUST',
    text: 'A suspended call is cancelled after a time limit if its client does not retry it.',
  },
  {
    id: 'R4.12',
    source: 'MRTR',
    level: 'MUST',
    text: "For a legacy client, each input request becomes a server request on the call's stream. The gateway then retries the call.",
  },
  {
    id: 'R4.13',
    source: 'MRTR',
    level: 'MUST',
    text: 'If a modern server requires a capability that the legacy client lacks, the request gets an error. The gateway never declares that capability to the server.',
  },
];
