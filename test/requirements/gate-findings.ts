import type { Requirement } from './requirement.ts';

/**
 * The 20 findings of the audit of 28 November 2026, which led to the three gates. `G-01` is its finding F-01; the letter is
 * another one because of the faults F01 to F30.
 */
export const gateFindings: readonly Requirement[] = [
  {
    id: 'G-01',
    text: 'What one text leaves in the scanner opens no way around the check of keys for another text.',
  },
  {
    id: 'G-02',
    text: 'A flood of lines or events that are no messages costs work that is linear in their bytes, at each transport.',
  },
  {
    id: 'G-03',
    text: 'No value of a peer is built without a limit in bytes, also for tools that may mirror parameters.',
  },
  {
    id: 'G-04',
    text: 'A look-up of a URI takes bounded time, whatever templates the servers of a view have.',
  },
  {
    id: 'G-05',
    text: 'A refused request makes no valid request of others fail.',
  },
  {
    id: 'G-06',
    text: 'A list of millions of elements is refused, on each path that changes a list.',
  },
  {
    id: 'G-07',
    text: '`required` of a tool with fixed arguments is changed only up to a number of entries.',
  },
  {
    id: 'G-08',
    text: 'A list of 99,000 tools is refused on each path that filters, changes or merges lists.',
  },
  {
    id: 'G-09',
    text: 'Long keys that are not ASCII count as work, and have a limit.',
  },
  {
    id: 'G-10',
    text: 'Subscriptions and requests of the largest size of a client do not fill the memory.',
  },
  {
    id: 'G-11',
    text: 'Names and URIs of the largest size of a server do not fill the memory.',
  },
  {
    id: 'G-12',
    text: 'A user cannot cancel the call of another user in a shared process, or report its progress.',
  },
  {
    id: 'G-13',
    text: 'A server of a view cannot answer for the tasks, or take over the templates, of another one.',
  },
  {
    id: 'G-14',
    text: 'Invented tokens lock no known user out, with introspection and with `auth: upstream`.',
  },
  {
    id: 'G-15',
    text: 'Messages without a request reach no user while several have used a process.',
  },
  {
    id: 'G-16',
    text: 'A server of a view cannot report progress of a call of another server.',
  },
  {
    id: 'G-17',
    text: 'The store in files follows no link, and uses no directory of another user.',
  },
  {
    id: 'G-18',
    text: 'No command writes the configuration of a server from a registry without a check.',
    untested: 'The command was removed (decision 0040).',
  },
  {
    id: 'G-19',
    text: '`config print` masks known forms of credentials in arguments.',
  },
  {
    id: 'G-20',
    text: 'An event or a line of tens of megabytes is copied while it comes, and never at once.',
  },
];
