import * as z from 'zod/mini';
import { isLoopback } from '../../core/auth/origin-rules.ts';

/** A URL without credentials, query or fragment, so that all parsers read it in the same way. */
export const plainUrl = (isSecure: boolean) =>
  z.string({ error: 'must be a URL' }).check(
    z.superRefine((value, context) => {
      const report = (message: string) => context.addIssue({ code: 'custom', message });
      const url = URL.canParse(value) ? new URL(value) : undefined;
      if (url === undefined || !['http:', 'https:'].includes(url.protocol)) return report('must be an https:// URL');
      if (url.username !== '' || url.password !== '') report('must not contain a user name or a password');
      if (/[?#\s"\\]/.test(value)) report('must not contain a query, a fragment, spaces or quotation marks');
      if (isSecure && url.protocol === 'http:' && !isLoopback(url.hostname)) {
        report('must use https, except on this machine: otherwise others on the network could forge tokens');
      }
    }),
  );
