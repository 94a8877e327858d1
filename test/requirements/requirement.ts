import type { OpenIssue } from './open-issues.ts';

/**
 * One thing that the gateway has to do, as data (STYLE.md 17). A test cites it by its id in brackets in its name, for
 * example `it('[R7.04] refuses …')`; test/requirements/coverage.test.ts fails for one that nothing cites.
 */
export interface Requirement {
  /**
   * The place in its list: `R7.04` is the fourth line of section 7 of PROTOCOL.md, `F16` the sixteenth row of its table
   * in HARDENING.md. A letter behind it marks the part of a line that comes with a later issue than the rest.
   */
  readonly id: string;
  /** What has to be true, in one sentence. */
  readonly text: string;
  /** Where it comes from: a document by PROTOCOL.md's abbreviation, or an advisory. */
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
