/** What an instance looks at before it acts. */
import { has, type Rules } from './rules.ts';
import type { Process, State } from './state.ts';

/** Does somebody wait here for the session: a client, or a request of the other instance? */
export const wants = ({ connections }: State, { exchange, name }: Process): boolean =>
  exchange.step === 'unsent' || connections.some(({ to, request }) => to === name && request !== null);

/** May it say what is not in the log, and hand requests to the backend? Looked at in the same step as it is done. */
export const canSpeak = ({ isUp, session, holdsByClock }: Process, rules: Rules): boolean =>
  isUp && session?.isVerified === true && (holdsByClock || !has(rules, 'ownClock'));

/** Under which a session may be taken over, or said not to exist. */
export function mayTakeOver({ redis }: State, process: Process, rules: Rules): boolean {
  const isYoung = has(rules, 'freshAge') ? redis.isYoung : process.sawYoung;
  const isHealthy = process.isHealthy || !has(rules, 'healthy');
  return process.holdsByClock && isHealthy && (!isYoung || !has(rules, 'quarantine'));
}
