import type { Requirement } from './requirement.ts';

/** docs/hardening.md: Advisories of peers. */
export const advisories: readonly Requirement[] = [
  {
    id: 'A01',
    text: 'No data from a client or peer reaches a command line.',
    source: 'CVE-2025-6514, CVE-2026-55887, mcp-bridgekit #3, MCP-connect #12',
  },
  {
    id: 'A02',
    text: 'Host and Origin are checked by default.',
    source: 'CVE-2025-49596, CVE-2025-66414, CVE-2026-34742, GHSA-89vp-x53w-74fx, CVE-2025-64443',
  },
  {
    id: 'A03',
    text: "Clients that all number their requests from 0 never receive each other's answers.",
    source: 'CVE-2026-25536',
  },
  {
    id: 'A04',
    text: "A Last-Event-ID cannot read another session's backlog.",
    source: 'GHSA-84j6-jc92-77jm',
  },
  {
    id: 'A05',
    text: 'A session id of another principal is treated as unknown, and the session is unaffected. An empty identity is refused.',
    source: 'CVE-2026-33946, CVE-2025-6515, python-sdk #2100, mcp-gateway-registry #1357, Yuzu #4754',
  },
  {
    id: 'A06',
    text: 'A request without a session id is never assigned to the only open session.',
    source: 'byterover #330',
  },
  {
    id: 'A07',
    text: 'An SSE endpoint must have the same origin as its stream, and redirects to another origin are not followed.',
    source: 'worldmonitor #4054, ContextForge',
  },
  {
    id: 'A08',
    text: 'A key that matches a protocol key only after case folding is not treated as that key. Duplicate keys are refused.',
    source: 'CVE-2026-27896, Envoy reject_duplicate_keys',
  },
  {
    id: 'A09',
    text: 'No regular expression for peer input has nested quantifiers.',
    source: 'CVE-2026-0621',
  },
  {
    id: 'A10',
    text: 'The installed HTTP libraries include the fixes for these vulnerabilities, and limits also apply to chunked bodies.',
    source:
      'CVE-2026-44456, CVE-2026-54288, CVE-2026-29085, CVE-2026-47676, CVE-2026-47673, CVE-2026-29087, CVE-2026-39406',
  },
  {
    id: 'A11',
    text: 'No request can be smuggled through a reused upstream connection.',
    source: 'GHSA-ggv3-7p47-pfv8',
  },
  {
    id: 'A12',
    text: 'However a session ends, its child process and the whole process group end too.',
    source: 'supergateway #108, #124, #137, #141, #160',
  },
  {
    id: 'A12b',
    text: 'A half-open GET does not keep a session open forever.',
    source: 'supergateway #108, #124, #137, #141, #160',
  },
];
