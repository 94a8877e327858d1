import { entryOf, type Reason } from '../faults.ts';

/** Where RFC 6455 (section 7.4.1) or its registry at IANA has a code that says just this. */
const standardCodes: ReadonlyMap<Reason, number> = new Map<Reason, number>([
  ['not_text', 1003],
  ['internal', 1011],
  ['draining', 1012],
  ['server_reconfigured', 1012],
  ['credentials_expired', 3000],
]);

/** Private codes are 4000 to 4999; ours end in the HTTP status that the same reason has elsewhere. */
const firstPrivateCode = 4000;

/** The code with which a WebSocket is closed for a reason of the catalogue; the reason itself is the text beside it. */
export const closeCodeOf = (reason: Reason): number =>
  standardCodes.get(reason) ?? firstPrivateCode + entryOf(reason).status;
