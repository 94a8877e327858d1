import type { Gateway } from './gateway.ts';

/** The URL of the status page as the gateway prints it: with the word of this start, where no key is asked for. */
export function statusPageOf(gateway: Pick<Gateway, 'stdout' | 'stderr'>): URL {
  const [, url] = /^Status page:\n {2}(\S+)$/m.exec(gateway.stdout() + gateway.stderr()) ?? [];
  if (url === undefined) throw new Error('The gateway printed no status page.');
  return new URL(url);
}

/** The word of this start. */
export const wordOf = (gateway: Pick<Gateway, 'stdout' | 'stderr'>): string => statusPageOf(gateway).hash.slice(1);

/** What the page sends with each request. */
export const pageHeaders = (gateway: Pick<Gateway, 'stdout' | 'stderr'>): Record<string, string> => ({
  'x-gangway-page': '1',
  authorization: `Bearer ${wordOf(gateway)}`,
});
