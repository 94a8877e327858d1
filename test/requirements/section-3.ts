import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 3: Results as the modern era shapes them. */
export const section3: readonly ProtocolRequirement[] = [
  {
    id: 'R3.01',
    source: 'BAS',
    level: 'MUST',
    text: 'Every result has a resultType. Results of a legacy server have the type complete.',
  },
  {
    id: 'R3.02',
    source: 'CACHE',
    level: 'MUST',
    text: 'Cacheable results have ttlMs and cacheScope. For a legacy server, the values are 0 and private.',
  },
  {
    id: 'R3.03',
    source: 'CACHE',
    level: 'MUST',
    text: 'All pages of a list have the same cacheScope.',
  },
  {
    id: 'R3.04',
    source: 'CACHE',
    level: 'MUST',
    text: 'input_required results have no caching hints. The caching hints in the result of a retry forbid caching.',
  },
  {
    id: 'R3.05',
    source: 'CACHE',
    level: 'MUST',
    text: 'No result with the scope private is shared between authorization contexts.',
  },
  {
    id: 'R3.06',
    source: 'BAS, RES',
    level: 'MUST',
    text: 'A missing resource is reported as -32602 with data.uri, and the legacy error code is translated.',
  },
  {
    id: 'R3.07',
    source: 'BAS',
    level: 'MUST',
    text: "The gateway's own errors use a code from -32020 to -32099 only if the specification defines that code.",
  },
  {
    id: 'R3.08',
    source: 'BAS',
    level: 'SHOULD',
    text: "Results include the server's serverInfo in _meta.",
  },
  {
    id: 'R3.09',
    source: 'LOG',
    level: 'MUST',
    text: 'A request gets log messages only if it requests them. The log messages are at or above the requested level, and arrive on the stream of the request.',
  },
  {
    id: 'R3.10',
    source: 'BAS',
    level: 'MUST',
    text: 'All other _meta keys pass through in both directions. A progress token keeps its value and type.',
  },
];
