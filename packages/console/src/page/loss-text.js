import { time } from './formats.js';

/**
 * Says why the page shows old numbers. After a drain from this page, the end of the gateway is no fault.
 * @param {{ state: string, heardAt: number | undefined, drainedAt: number | undefined }} loss the state of the
 *   connection, when the gateway was heard last, and when this page has drained it
 * @returns {{ title: string, text: string, mood: string }}
 */
export function describeLoss({ state, heardAt, drainedAt }) {
  const rest = 'This page shows what was known then.';
  if (state === 'away' && drainedAt !== undefined) {
    const text = `Drained from this page at ${time(drainedAt)}, the gateway has exited. ${rest}`;
    return { title: `Drained at ${time(drainedAt)}`, text, mood: '' };
  }
  const title = heardAt === undefined ? 'No connection' : `No connection since ${time(heardAt)}`;
  return { title, text: `${title}. ${rest}`, mood: 'bad' };
}
