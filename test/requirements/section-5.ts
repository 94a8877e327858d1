import type { ProtocolRequirement } from './requirement.ts';

/** docs/protocol.md, section 5: Subscriptions. */
export const section5: readonly ProtocolRequirement[] = [
  {
    id: 'R5.01',
    source: 'SUB',
    level: 'MUST',
    text: 'The first message of a listen stream is the acknowledgement, with the id of the listen request in the same JSON type.',
  },
  {
    id: 'R5.02',
    source: 'BAS',
    level: 'MUST',
    text: 'Every message on a listen stream carries the id of the listen request.',
  },
  {
    id: 'R5.03',
    source: 'SUB',
    level: 'MUST',
    text: 'A listen stream carries only the notifications that its filter selects. Resource URIs match exactly.',
  },
  {
    id: 'R5.04',
    source: 'SUB',
    level: 'MUST',
    text: 'The acknowledgement contains the part of the filter that the server supports.',
  },
  {
    id: 'R5.05',
    source: 'S26, LOG',
    level: 'MUST',
    text: 'Progress and log notifications are never sent on a listen stream.',
  },
  {
    id: 'R5.06',
    source: 'SUB',
    level: 'MUST',
    text: 'On a legacy server, listen requests become reference-counted resources/subscribe requests. List changes go to all listeners.',
  },
  {
    id: 'R5.07',
    source: 'SUB',
    level: 'SHOULD',
    text: 'If the server or the gateway ends a listen stream, the client first gets the result of its listen request. A stdio server may end its stream with a result or a cancellation.',
  },
  {
    id: 'R5.08',
    source: 'SUB, STD26',
    level: 'MUST',
    text: 'When a client closes its listen stream, the gateway sends a cancellation of the listen request to a stdio server.',
  },
  {
    id: 'R5.09',
    source: 'SUB, STD26',
    level: 'MUST',
    text: 'The gateway sends all listen requests again when a server has restarted.',
  },
  {
    id: 'R5.10',
    source: 'SUB',
    level: 'MUST',
    text: 'If a process on another instance reports a change, the listeners of the same server on this instance are notified.',
  },
];
