import { type ScannedValue, scanJson } from '../json.ts';

/** Finds the members of a text that is a message and was scanned before. */
export function rescanMembers(text: Buffer): ScannedValue {
  const scan = scanJson(text, Number.POSITIVE_INFINITY);
  const [ranges] = scan.ok ? scan.values : [];
  if (ranges === undefined) throw new Error('the text of a message has changed since it was read');
  return ranges;
}
