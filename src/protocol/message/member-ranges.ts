import { type ScannedValue, scanJson } from '../json/scan.ts';

/** The members of a text that was scanned before, and is a message. */
export function rescanMembers(text: Buffer): ScannedValue {
  const scan = scanJson(text, Number.POSITIVE_INFINITY);
  const [places] = scan.ok ? scan.values : [];
  if (places === undefined) throw new Error('the text of a message has changed since it was read');
  return places;
}
