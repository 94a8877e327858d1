import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 3: Results as the modern era shapes them. */
export const section3: readonly ProtocolRequirement[] = [
  {
    id: 'R3.01',
    source: 'BAS',
    level: 'MUST',
    text: "Every result has resultType; a legacy server's results get the type complete.",
  },
  {
    id: 'R3.02',
    source: 'CACHE',
    level: 'MUST',
    text: 'Cacheable results carry ttlMs and cacheScope; for a legacy server 0 and private.',
  },
  {
    id: 'R3.03',
    source: 'CACHE',
    level: 'MUST',
    text: 'Every page of one list has the same cacheScope.',
  },
  {
    id: 'R3.04',
    source: 'CACHE',
    level: 'MUST',
    text: 'input_required results carry no caching hints; those of results of retries say that they are never cached.',
  },
  {
    id: 'R3.05',
    source: 'CACHE',
    level: 'MUST',
    text: 'Nothing that is scoped private is shared between authorization contexts.',
  },
  {
    id: 'R3.06',
    source: 'BAS, RES',
    level: 'MUST',
    text: 'A missing resource is -32602 with data.uri; the legacy code is mapped.',
  },
  {
    id: 'R3.07',
    source: 'BAS',
    level: 'MUST',
    text: 'Own errors use -32020..-32099 only where the specification defines them.',
  },
  {
    id: 'R3.08',
    source: 'BAS',
    level: 'SHOULD',
    text: "Results carry the server's serverInfo in _meta.",
  },
  {
    id: 'R3.09',
    source: 'LOG',
    level: 'MUST',
    text: 'Log messages go only to requests that asked for them, at or above their level, on their own stream.',
  },
  {
    id: 'R3.10',
    source: 'BAS',
    level: 'MUST',
    text: 'All other _meta keys pass both ways, and a progress token keeps value and type.',
  },
];
