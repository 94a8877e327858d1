import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 9: What the official SDKs need from a gateway. */
export const section9: readonly ProtocolRequirement[] = [
  {
    id: 'R9.01',
    source: 'V2',
    level: 'V2',
    text: 'A plain client sends initialize at once, without probe or new headers, and is served.',
  },
  {
    id: 'R9.01b',
    source: 'V2',
    level: 'V2',
    text: 'A client in auto or pinned mode finds the modern era by server/discover.',
  },
  {
    id: 'R9.02',
    source: 'V2',
    level: 'V2',
    text: 'server/discover is never answered with 5xx because a server starts slowly or cannot be started.',
  },
  {
    id: 'R9.03',
    source: 'V2',
    level: 'V2',
    text: "The subscription id comes back with the type of the listen request's id.",
  },
  {
    id: 'R9.04',
    source: 'V2',
    level: 'V2',
    text: 'The body of a 400 for a request whose id could be read carries that id.',
  },
  {
    id: 'R9.05',
    source: 'V2',
    level: 'V2',
    text: 'The session id is sent with the answer to initialize.',
  },
  {
    id: 'R9.06',
    source: 'V2',
    level: 'V2',
    text: 'A POST stream cut after an event id and before its response is resumed by the official clients, as is a GET stream.',
  },
  {
    id: 'R9.07',
    source: 'V2',
    level: 'V2',
    text: 'A modern client cancels by closing the stream, and nothing waits for a notification.',
  },
  {
    id: 'R9.08',
    source: 'V2',
    level: 'V2',
    text: 'After -32020 a client lists tools again and its retry passes.',
  },
  {
    id: 'R9.09',
    source: 'V2',
    level: 'V2',
    text: 'Up to ten rounds of auto-fulfilled input pass, each with a new id and the state byte for byte.',
  },
  {
    id: 'R9.10',
    source: 'V2',
    level: 'V2',
    text: 'The first message decides the era of a dual-era stdio process, and a process is used in one era only.',
  },
  {
    id: 'R9.11',
    source: 'V2',
    level: 'V2',
    text: 'A v2 stdio server serves legacy sessions without translation: one process per session, begun with initialize.',
  },
  {
    id: 'R9.11b',
    source: 'V2',
    level: 'V2',
    text: 'A modern-only stdio server serves legacy clients by translation.',
  },
  {
    id: 'R9.12',
    source: 'V2',
    level: 'V2',
    text: 'A progress notification that shares a chunk with the result reaches the client, before the result.',
  },
  {
    id: 'R9.13',
    source: 'V2',
    level: 'V2',
    text: 'Towards a modern HTTP server the gateway builds all modern headers and leaves out tools it must hide.',
  },
  {
    id: 'R9.14',
    source: 'V2',
    level: 'V2',
    text: 'A GET is never refused because an owner or Redis is away: 200, comments, and it waits.',
  },
  {
    id: 'R9.15',
    source: 'V2',
    level: 'V2',
    text: 'A resumed stream first sends an empty event with the Last-Event-ID itself, from 2025-11-25 on.',
  },
  {
    id: 'R9.16',
    source: 'V2',
    level: 'V2',
    text: 'A POST stream whose history is lost gets a JSON-RPC error; a GET stream an event named gap, then what is kept.',
  },
  {
    id: 'R9.17',
    source: 'V2',
    level: 'V2',
    text: "A resume of a stream whose response was delivered ends the client's loop.",
  },
  {
    id: 'R9.18',
    source: 'V2',
    level: 'V2',
    text: 'Each priming event carries the normal retry.',
  },
  {
    id: 'R9.18b',
    source: 'V2',
    level: 'V2',
    text: "A drain's retry does not stay with a client that goes on elsewhere.",
  },
];
