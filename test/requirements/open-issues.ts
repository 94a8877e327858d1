/**
 * The titles of the issues that requirements may be deferred to. Who closes an issue takes it out: what is still
 * deferred to it then fails.
 */
export const openIssues = {
  pleasure: 'A pleasure to run: seen, measured, looked at',
  proof: 'Proof: as fast as a pipe, nothing lost, and what a machine can hold, shown by runs that anyone can repeat',
} as const;

export type OpenIssue = (typeof openIssues)[keyof typeof openIssues];
