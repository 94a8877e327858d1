import { entryOf, type Reason } from '../faults.ts';

/** Reasons for which RFC 6455 (section 7.4.1) or its registry at IANA has an exact code. */
const standardCodes: ReadonlyMap<Reason, number> = new Map<Reason, number>([
  ['not_text', 1003],
  ['internal', 1011],
  ['draining', 1012],
  ['server_reconfigured', 1012],
  ['credentials_expired', 3000],
]);

/** Private codes are 4000 to 4999. The gateway's codes end in the HTTP status of the same reason. */
const firstPrivateCode = 4000;

/** The close code of a WebSocket for a reason of the catalogue; the reason itself is sent beside it as text. */
export const closeCodeOf = (reason: Reason): number =>
  standardCodes.get(reason) ?? firstPrivateCode + entryOf(reason).status;
