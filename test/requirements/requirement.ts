import type { OpenIssue } from './open-issues.ts';

/**
 * One thing that the gateway has to do, as data. A test cites it by its id in brackets in its name, for example
 * `it('[R7.04] refuses …')`; coverage.test.ts fails for one that nothing cites. docs/protocol.md and docs/hardening.md are
 * written from these: `npx vitest run test/requirements/pages.test.ts --update`.
 */
export interface Requirement {
  /**
   * The place in its list: `R7.04` is the fourth of section 7 in docs/protocol.md, `F16` the sixteenth fault in
   * docs/hardening.md. A letter behind it marks the part of a line that comes with a later issue than the rest.
   */
  readonly id: string;
  /** What has to be true, in one sentence. */
  readonly text: string;
  /** Where it comes from: a document by the abbreviation of docs/protocol.md, or an advisory. */
  readonly source?: string;
  /** Why no test can show it, for what is documented or a matter of the repository. */
  readonly untested?: string;
  /** The open issue that brings it, if nothing has to cite it yet. */
  readonly deferredTo?: OpenIssue;
}

/** A requirement of the protocol. */
export interface ProtocolRequirement extends Requirement {
  readonly source: string;
  /** As strong as its source has it; what follows from a MUST is one. `V2`: official SDKs depend on it. */
  readonly level: 'MUST' | 'SHOULD' | 'MAY' | 'V2';
}
