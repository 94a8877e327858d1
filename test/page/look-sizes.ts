import { environmentNumber } from '../support/environment-number.ts';

/** The windows in which the page is looked at. */
export const sizes = { desk: { width: 1280, height: 900 }, phone: { width: 375, height: 812 } } as const;

/** The looks that are tried: all four with `PAGE_LOOKS=4`, or else the first ones. */
export const firstLooks = (count: number) =>
  (
    [
      ['phone', 'dark'],
      ['desk', 'light'],
      ['desk', 'dark'],
      ['phone', 'light'],
    ] as const
  )
    .slice(0, environmentNumber('PAGE_LOOKS', count))
    .map(([size, colorScheme]) => [`${size}, ${colorScheme}`, { size, viewport: sizes[size], colorScheme }] as const);
