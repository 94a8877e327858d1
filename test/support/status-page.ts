import type { Gateway } from './gateway.ts';

/** The URL of the status page that the gateway prints, with the start token if there is no authentication. */
export function statusPageOf(gateway: Pick<Gateway, 'stdout' | 'stderr'>): URL {
  const [, url] = /^Status page: (\S+)/m.exec(gateway.stdout() + gateway.stderr()) ?? [];
  if (url === undefined) throw new Error('The gateway printed no status page.');
  return new URL(url);
}

/** The start token. */
export const wordOf = (gateway: Pick<Gateway, 'stdout' | 'stderr'>): string => statusPageOf(gateway).hash.slice(1);

/** The headers of the page's requests. */
export const pageHeaders = (gateway: Pick<Gateway, 'stdout' | 'stderr'>): Record<string, string> => ({
  'x-gangway-page': '1',
  authorization: `Bearer ${wordOf(gateway)}`,
});
