import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 9: What the official SDKs need from a gateway. */
export const section9: readonly ProtocolRequirement[] = [
  {
    id: 'R9.01',
    source: 'V2',
    level: 'V2',
    text: 'A plain client that sends initialize immediately, without a probe or new headers, is served.',
  },
  {
    id: 'R9.01b',
    source: 'V2',
    level: 'V2',
    text: 'A client in auto or pinned mode detects the modern era with server/discover.',
  },
  {
    id: 'R9.02',
    source: 'V2',
    level: 'V2',
    text: 'server/discover never gets a 5xx status, even if the server starts slowly or cannot be started.',
  },
  {
    id: 'R9.03',
    source: 'V2',
    level: 'V2',
    text: 'The subscription id has the same JSON type as the id of the listen request.',
  },
  {
    id: 'R9.04',
    source: 'V2',
    level: 'V2',
    text: 'The body of a 400 response has the id of the request if that id could be read.',
  },
  {
    id: 'R9.05',
    source: 'V2',
    level: 'V2',
    text: 'The answer to initialize carries the session id.',
  },
  {
    id: 'R9.06',
    source: 'V2',
    level: 'V2',
    text: 'The official clients resume a GET stream, and a POST stream that was cut between an event id and the response.',
  },
  {
    id: 'R9.07',
    source: 'V2',
    level: 'V2',
    text: 'A modern client cancels a request by closing its stream, and the gateway does not wait for a notification.',
  },
  {
    id: 'R9.08',
    source: 'V2',
    level: 'V2',
    text: 'After -32020, a client lists the tools again, and its retry succeeds.',
  },
  {
    id: 'R9.09',
    source: 'V2',
    level: 'V2',
    text: 'Up to ten rounds of auto-fulfilled input succeed. Each round has a new request id and returns requestState byte for byte.',
  },
  {
    id: 'R9.10',
    source: 'V2',
    level: 'V2',
    text: 'The first message determines the era of a dual-era stdio process. Each process is used in one era only.',
  },
  {
    id: 'R9.11',
    source: 'V2',
    level: 'V2',
    text: 'A stdio server built with SDK version 2 serves legacy sessions without translation. Each session has its own process, which starts with initialize.',
  },
  {
    id: 'R9.11b',
    source: 'V2',
    level: 'V2',
    text: 'The gateway translates between legacy clients and a modern-only stdio server.',
  },
  {
    id: 'R9.12',
    source: 'V2',
    level: 'V2',
    text: 'A progress notification in the same chunk as the result reaches the client before the result.',
  },
  {
    id: 'R9.13',
    source: 'V2',
    level: 'V2',
    text: 'For a modern HTTP server, the gateway builds all modern headers and leaves out tools with invalid x-mcp-header definitions.',
  },
  {
    id: 'R9.14',
    source: 'V2',
    level: 'V2',
    text: 'A GET is never refused because an owner or Redis is unavailable. The answer is 200 with comments while the gateway waits.',
  },
  {
    id: 'R9.15',
    source: 'V2',
    level: 'V2',
    text: 'From 2025-11-25 on, a resumed stream begins with an empty event whose id is the Last-Event-ID.',
  },
  {
    id: 'R9.16',
    source: 'V2',
    level: 'V2',
    text: 'A POST stream with lost history gets a JSON-RPC error. A GET stream gets an event named gap and then the stored events.',
  },
  {
    id: 'R9.17',
    source: 'V2',
    level: 'V2',
    text: 'If a client resumes a stream whose response it already has, the client gets 204 and stops retrying.',
  },
  {
    id: 'R9.18',
    source: 'V2',
    level: 'V2',
    text: 'Each priming event has the normal retry value.',
  },
  {
    id: 'R9.18b',
    source: 'V2',
    level: 'V2',
    text: 'If a drain moves a client to another instance, the client gets the normal retry value again.',
  },
];
