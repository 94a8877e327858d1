import * as z from 'zod/mini';
import { list } from '../options/option-kinds.ts';

const pattern = z
  .string({ error: 'must be a list of strings' })
  .check(z.refine((text) => text !== '', { error: 'must be a name, in which * stands for any characters' }));

/** What the audit log says of the calls of a server or view; a part of `serverOptions`, and of each view. */
export const auditOptions = {
  audit: {
    arguments: list(
      pattern,
      'Tool whose arguments the audit log contains, up to 8 KiB for each call: a name with * for any characters; repeatable. None by default.',
    ),
    hide: list(
      pattern,
      'Name of an argument whose value the audit log replaces, at any depth: a name with *; repeatable.',
    ),
  },
};
