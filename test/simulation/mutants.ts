/** A deliberate error in the code under test, which the simulation has to find. */
export interface Mutant {
  readonly name: string;
  /** What the error breaks, for a person who reads the report. */
  readonly breaks: string;
  readonly file: string;
  /** The text to replace. It occurs exactly once in the file. */
  readonly find: string;
  readonly replace: string;
}

/** Errors that a change to the code could introduce. Each breaks one promise of docs/design.md. */
export const mutants: readonly Mutant[] = [
  {
    name: 'no-fence',
    breaks: 'P6: the store accepts events of an owner that was replaced',
    file: 'src/core/store/memory/memory-sessions.ts',
    find: "if (session.record.epoch > epoch) return 'fenced';",
    replace: '',
  },
  {
    name: 'lease-never-lapses',
    breaks: 'P6: an instance acts as owner after its lease',
    file: 'src/features/cluster/ownership/lease.ts',
    find: 'return performance.now() < this.#heldUntil - this.#options.limits.leaseMarginMs;',
    replace: 'return this.#isJoined;',
  },
  {
    name: 'takes-over-living-owners',
    breaks: 'P6: two instances own a session',
    file: 'src/features/cluster/ownership/directory.ts',
    find: "if (isAlive && loss === 'lost') return { instance: from.owner, epoch: from.epoch };",
    replace: '',
  },
  {
    name: 'half-events-are-passed-on',
    breaks: 'P2: a client gets the half of an event of an owner that is lost',
    file: 'src/features/cluster/forward/received-events.ts',
    find: 'const end = found >= 0 ? found + endOfEvent.length : isEndSplit ? 1 : 0;',
    replace: 'const end = isEndSplit ? 1 : found < 0 ? part.length : found + endOfEvent.length;',
  },
  {
    name: 'lost-requests-are-sent-again',
    breaks: 'P4: a call whose owner may have received it is sent to the next one',
    file: 'src/features/cluster/forward/forwarded-request.ts',
    find: 'if (this.#route.mayRepeat && operation.messages.every(isHarmless)) return true;',
    replace: 'if (this.#route.mayRepeat) { this.#reply.mayHaveRun = false; return true; }',
  },
  {
    name: 'every-call-runs-again',
    breaks: 'P4: a call that is not safe to repeat runs twice',
    file: 'src/core/call/rerun.ts',
    find: "methodOf(method).effect !== 'acts'",
    replace: "method === 'tools/call' || methodOf(method).effect !== 'acts'",
  },
  {
    name: 'calls-of-the-last-owner-forgotten',
    breaks: 'P3: a call whose owner was killed never ends',
    file: 'src/core/session/record/adoption.ts',
    find: 'const calls = log.pending.map((call) => {',
    replace: 'const calls = log.pending.slice(1).map((call) => {',
  },
  {
    name: 'next-owner-runs-what-may-have-run',
    breaks: 'P4: a call that may have run is run by the next owner',
    file: 'src/core/session/inbound/inbound.ts',
    find: "if (again && !messages.every(isHarmless)) return reply.answer(faultAnswer('outcome_unknown', ids[0] ?? null));",
    replace: '',
  },
  {
    name: 'resume-repeats-an-event',
    breaks: 'P2: a client that resumes gets an event twice',
    file: 'src/core/store/memory/memory-log.ts',
    find: 'if (event !== undefined && compareLogPositions(event, after) <= 0) low = middle + 1;',
    replace: 'if (event !== undefined && compareLogPositions(event, after) < 0) low = middle + 1;',
  },
  {
    name: 'resume-skips-an-event',
    breaks: 'P2: a client that resumes misses an event',
    file: 'src/core/session/outbound/stream-cursor.ts',
    find: 'this.cursor = after && { epoch: after.epoch, seq: after.seq };',
    replace: 'this.cursor = after && { epoch: after.epoch, seq: after.seq + 1 };',
  },
  {
    name: 'untrue-refusal',
    breaks: 'P3: the client is told that a call did not run, although it may have',
    file: 'src/features/cluster/forward/client-reply.ts',
    find: 'const isMisleading = this.mayHaveRun && ',
    replace: 'const isMisleading = false && this.mayHaveRun && ',
  },
  {
    name: 'sessions-end-with-their-instance',
    breaks: 'P9: a drain ends sessions instead of releasing them',
    file: 'src/core/session/session.ts',
    find: "return () => (reason === 'released' ? this.releaseRecord() : this.endRecord());",
    replace: 'return () => this.endRecord();',
  },
  {
    name: 'events-are-written-again',
    breaks: 'P1: an event is what JSON.parse and JSON.stringify make of the text of the server',
    file: 'src/core/session/outbound/session-log.ts',
    find: 'const event = { epoch, stream, seq, previous: this.#tails.get(stream), data, last };',
    replace:
      'data = data.length === 0 ? data : Buffer.from(JSON.stringify(JSON.parse(data.toString()))); ' +
      'const event = { epoch, stream, seq, previous: this.#tails.get(stream), data, last };',
  },
  {
    name: 'sent-before-stored',
    breaks: 'P5: an event is sent while its append is under way',
    file: 'src/core/session/outbound/session-log.ts',
    find: 'this.#sent = [...this.#sent, { batch, outcome }];',
    replace: 'this.#sent = [...this.#sent, { batch, outcome }]; this.streams.deliver(batch);',
  },
  {
    name: 'timer-outlives-its-stream',
    breaks: 'P8: each connection leaves the timer of its greatest age behind',
    file: 'src/core/session/outbound/stream-cursor.ts',
    find: 'clearTimeout(this.ageTimer);',
    replace: '',
  },
  {
    name: 'calls-without-a-limit',
    breaks: 'P8: a session has more calls in flight than its limit',
    file: 'src/core/session/inbound/inbound.ts',
    find: 'calls.size + ids.length > maxCalls',
    replace: 'false',
  },
  {
    name: 'forwarded-requests-stay',
    breaks: 'P8: an instance keeps an entry of each request that it handed on for ever',
    file: 'src/features/cluster/forward/forwarded-requests.ts',
    find: '.finally(() => this.#requests.delete(request)),',
    replace: '.finally(() => undefined),',
  },
  {
    name: 'events-of-a-batch-share-an-id',
    breaks: 'P2: all events that are written at once have the same id',
    file: 'src/core/protocol/wire/sse.ts',
    find: 'writeDigits(text, at + sharedLength, seq)',
    replace: 'writeDigits(text, at + sharedLength, events[0]?.seq ?? seq)',
  },
  // The simulation has found the errors below in the code itself.
  {
    name: 'resume-fails-while-redis-is-away',
    breaks: 'P7: a client that resumes during an outage of Redis gets an internal error',
    file: 'src/core/session/outbound/streams.ts',
    find: "return cause instanceof StoreUnavailable ? 'store_unavailable' : 'internal';",
    replace: "return 'internal';",
  },
  {
    name: 'session-that-was-stored-late-loses-its-store',
    breaks: 'P7: a session that was opened during an outage of Redis ends at the next outage',
    file: 'src/core/session/session-opening.ts',
    find: 'const givesUp = (): AbortSignal => AbortSignal.timeout(session.limits.storeWaitMs);',
    replace: 'session.stopStoreAfter(session.limits.storeWaitMs); const givesUp = () => session.storeGone;',
  },
];

/** A vite plugin that puts one mutant into the code. */
export function withMutant({ file, find, replace, name }: Mutant) {
  return {
    name: `mutant ${name}`,
    enforce: 'pre' as const,
    transform(code: string, id: string): string | undefined {
      if (!id.split('?')[0]?.endsWith(file)) return undefined;
      if (code.split(find).length !== 2) throw new Error(`${name}: the text to replace is not there once in ${file}`);
      return code.replace(find, () => replace);
    },
  };
}
