import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 4: Multi-round-trip requests. */
export const section4: readonly ProtocolRequirement[] = [
  {
    id: 'R4.01',
    source: 'MRTR',
    level: 'MUST',
    text: "A server's questions reach a modern client only inside inputRequests of an input_required result.",
  },
  {
    id: 'R4.02',
    source: 'MRTR',
    level: 'MUST',
    text: 'input_required is answered to tools/call, prompts/get and resources/read alone; a question elsewhere gets an error.',
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
    text: 'inputRequests has keys unique in the request, and values with method and params but no JSON-RPC id.',
  },
  {
    id: 'R4.05',
    source: 'MRTR',
    level: 'MUST',
    text: 'Only capabilities that this request declared are offered to the server; what it needs beyond gets -32021.',
  },
  {
    id: 'R4.06',
    source: 'MRTR',
    level: 'MUST',
    text: 'requestState is protected, bound to principal, request and expiry; one that fails is refused with -32602.',
  },
  {
    id: 'R4.07',
    source: 'MRTR',
    level: 'MUST',
    text: "A modern server's requestState comes back to it byte for byte.",
  },
  {
    id: 'R4.08',
    source: 'MRTR',
    level: 'MUST',
    text: 'If the server sent no requestState, the retry to it has none.',
  },
  {
    id: 'R4.09',
    source: 'MRTR',
    level: 'MUST',
    text: 'A retry may land on another instance: the owner of the suspended call is found, or an error says that it is lost.',
  },
  {
    id: 'R4.10',
    source: 'MRTR',
    level: 'SHOULD',
    text: 'Unknown keys in inputResponses are ignored and missing ones are asked again.',
  },
  {
    id: 'R4.11',
    source: 'MRTR',
    level: 'MUST',
    text: 'A suspended call whose client never comes back is cancelled after a limit.',
  },
  {
    id: 'R4.12',
    source: 'MRTR',
    level: 'MUST',
    text: "For a legacy client each input request becomes a server request on the call's stream, then the gateway retries.",
  },
  {
    id: 'R4.13',
    source: 'MRTR',
    level: 'MUST',
    text: 'A legacy client without the capability gets an error, since the modern server was not told that it had it.',
  },
];
