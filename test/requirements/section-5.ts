import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 5: Subscriptions. */
export const section5: readonly ProtocolRequirement[] = [
  {
    id: 'R5.01',
    source: 'SUB',
    level: 'MUST',
    text: "The first message of a listen stream acknowledges it under the listen request's own id, same type.",
  },
  {
    id: 'R5.02',
    source: 'BAS',
    level: 'MUST',
    text: 'Every message on a listen stream carries that id.',
  },
  {
    id: 'R5.03',
    source: 'SUB',
    level: 'MUST',
    text: 'A listen stream carries only what its filter asks for; resource URIs match exactly.',
  },
  {
    id: 'R5.04',
    source: 'SUB',
    level: 'MUST',
    text: 'The acknowledged filter is the part that the server supports.',
  },
  {
    id: 'R5.05',
    source: 'S26, LOG',
    level: 'MUST',
    text: 'Progress and log notifications never go on a listen stream.',
  },
  {
    id: 'R5.06',
    source: 'SUB',
    level: 'MUST',
    text: 'On a legacy server listens become reference-counted resources/subscribe and fanned-out list changes.',
  },
  {
    id: 'R5.07',
    source: 'SUB',
    level: 'SHOULD',
    text: 'A listen that the server side ends gets its result before the stream closes; from stdio both forms are taken.',
  },
  {
    id: 'R5.08',
    source: 'SUB, STD26',
    level: 'MUST',
    text: 'A client that closes its listen stream has it cancelled at a stdio server.',
  },
  {
    id: 'R5.09',
    source: 'SUB, STD26',
    level: 'MUST',
    text: 'A restarted server gets its listen requests again.',
  },
  {
    id: 'R5.10',
    source: 'SUB',
    level: 'MUST',
    text: 'A change that a process behind another instance reports reaches the listeners of the same server here.',
  },
];
