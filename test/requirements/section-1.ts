import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 1: One endpoint, two eras: which era a request belongs to. */
export const section1: readonly ProtocolRequirement[] = [
  {
    id: 'R1.01',
    source: 'VER',
    level: 'MUST',
    text: 'A request whose params._meta names a protocolVersion is modern, whatever its session header says.',
  },
  {
    id: 'R1.02',
    source: 'VER, S26',
    level: 'MUST',
    text: 'initialize without modern _meta is legacy; with a complete one it is an unknown method: 404 and -32601.',
  },
  {
    id: 'R1.03',
    source: 'BAS, S26',
    level: 'MUST',
    text: 'A POST request with the modern version header but without the _meta key is refused with 400 and -32602.',
  },
  {
    id: 'R1.04',
    source: 'BAS',
    level: 'MUST',
    text: '_meta without protocolVersion or without clientCapabilities is refused with 400 and -32602.',
  },
  {
    id: 'R1.05',
    source: 'BAS',
    level: 'MAY',
    text: '_meta without clientInfo is served.',
  },
  {
    id: 'R1.06',
    source: 'VER',
    level: 'MAY',
    text: 'Modern and legacy clients use the endpoint at once, and no state of one reaches the other.',
  },
  {
    id: 'R1.07',
    source: 'S26',
    level: 'MUST',
    text: 'A batch that holds a modern request is refused with 400.',
  },
  {
    id: 'R1.08',
    source: 'S26',
    level: 'MUST',
    text: 'A JSON-RPC response posted in the modern era is refused with 4xx.',
  },
  {
    id: 'R1.09',
    source: 'V2',
    level: 'V2',
    text: 'Refusals are checked in the order of the official server: media type, JSON, shape, envelope, headers, method.',
  },
];
