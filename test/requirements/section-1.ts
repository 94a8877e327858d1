import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 1: One endpoint, two eras: which era a request belongs to. */
export const section1: readonly ProtocolRequirement[] = [
  {
    id: 'R1.01',
    source: 'VER',
    level: 'MUST',
    text: 'A request with a protocolVersion in params._meta is modern, regardless of its session header.',
  },
  {
    id: 'R1.02',
    source: 'VER, S26',
    level: 'MUST',
    text: 'initialize without a protocolVersion in _meta is a legacy request, regardless of its version header, and negotiates a legacy revision. With one, initialize is a removed method and gets 404 and -32601.',
  },
  {
    id: 'R1.03',
    source: 'BAS, S26',
    level: 'MUST',
    text: 'A POST request with the modern version header but without protocolVersion in _meta gets 400 and -32602, unless its method is initialize or a removed method.',
  },
  {
    id: 'R1.04',
    source: 'BAS',
    level: 'MUST',
    text: 'A modern request without protocolVersion or clientCapabilities in _meta gets 400 and -32602, unless its method is a removed method.',
  },
  {
    id: 'R1.05',
    source: 'BAS',
    level: 'MAY',
    text: 'A request with _meta but without clientInfo is served.',
  },
  {
    id: 'R1.06',
    source: 'VER',
    level: 'MAY',
    text: 'Modern and legacy clients can use the endpoint at the same time. The two kinds of clients do not share any state.',
  },
  {
    id: 'R1.07',
    source: 'S26',
    level: 'MUST',
    text: 'A batch that contains a modern request gets 400.',
  },
  {
    id: 'R1.08',
    source: 'S26',
    level: 'MUST',
    text: 'In the modern era, a POST with a JSON-RPC response gets a 4xx status.',
  },
  {
    id: 'R1.09',
    source: 'V2',
    level: 'V2',
    text: 'The gateway checks for errors in the order of the official server: media type, JSON, shape, envelope, headers, method.',
  },
];
