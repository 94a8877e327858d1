import { describe, expect, it } from 'vitest';
import { type Configuration, configurations, failover, run, say } from './configurations.ts';
import { amendments, assumptions, type Guard, writtenGuards } from './rules.ts';

interface Mutant extends Omit<Configuration, 'name'> {
  readonly without: readonly Guard[];
  readonly finds: string;
}

const back = { isPrompt: true, hasReplica: true };
const mutants: readonly Mutant[] = [
  { without: ['fence'], finds: '[P6] an older epoch', request: 'stream', at: 1, faults: { lapse: 1 } },
  { without: ['declareDead'], finds: '[P6] the session was taken over', request: 'any', faults: {} },
  { without: ['ownClock'], finds: '[P6] the session was taken over', request: 'any', faults: { lapse: 1 } },
  { without: ['verify'], finds: '[P6] the session was taken over', request: 'any', faults: { lapse: 1 } },
  { without: ['askAgain'], finds: '[P5] an event was sent', request: 'stream', at: 0, faults: { lose: 1 } },
  { without: ['storedFirst'], finds: '[P5] an event was sent', request: 'stream', at: 0, faults: {} },
  { without: ['tombstone'], finds: '[P7] a deleted session', request: 'any', faults: { remove: 1, cut: 1 } },
  { without: ['healthy'], finds: '[P6] the session was taken over', request: 'any', ...back, faults: failover },
  { without: ['quarantine'], finds: '[P7] 404', request: 'call', at: 1, faults: { flush: 1 } },
  {
    without: ['epochTime'],
    finds: '[P6] an epoch has two',
    request: 'any',
    ...back,
    faults: { ...failover, lapse: 1 },
  },
  { without: ['outcomeUnknown'], finds: '[P3] a call was handed', request: 'call', at: 1, faults: { lapse: 1 } },
  {
    without: ['registerCompares'],
    finds: '[P6] the session was taken over',
    request: 'any',
    faults: { lapse: 2, delay: 1 },
  },
  { without: ['suspect'], finds: '[P6] two owners', request: 'any', ...back, faults: { ...failover, lapse: 1 } },
  {
    without: ['restoredTells'],
    finds: '[P6] two owners',
    request: 'any',
    isPrompt: true,
    faults: { flush: 1, lapse: 1 },
  },
  {
    without: ['registerTells'],
    finds: '[P3] no way leads to an answer',
    request: 'stream',
    at: 0,
    events: 1,
    isPrompt: true,
    faults: { ...failover, replicate: 1, crash: 1 },
  },
  {
    without: ['ownName'],
    finds: '[P3] no way leads to an answer',
    request: 'any',
    ...back,
    faults: { ...failover, remove: 1, cut: 1 },
  },
  { without: ['freshAge'], finds: '[P7] 404', request: 'call', at: 1, faults: { flush: 1 } },
  { without: ['termOfReply'], finds: '[P6] the session was taken over', request: 'any', faults: { lapse: 2 } },
  {
    without: ['noResend'],
    finds: '[P6] the session was taken over',
    request: 'any',
    hasReplica: true,
    faults: { ...failover, lapse: 1 },
  },
  {
    without: ['failoverBreaksConnections'],
    finds: '[P6] the session was taken over',
    request: 'any',
    ...back,
    faults: failover,
  },
];

describe('the protocol of decision 0015', () => {
  it.each(configurations)('$name: holds in every state', { timeout: 120_000 }, (configuration) => {
    const { faults, fewer = faults } = configuration;
    const { states, transitions, violation } = run({ ...configuration, faults: fewer });
    say(`model: ${configuration.name}: ${states} states, ${transitions} transitions`);
    expect(violation).toBeUndefined();
  });
});

describe('the model', () => {
  it.each(mutants)('finds $finds … without $without', { timeout: 120_000 }, ({ without, finds, ...configuration }) => {
    const { states, violation } = run({ name: '', ...configuration }, without);
    say(`model without ${without}: ${violation?.fault} after ${states} states: ${violation?.trace.join('; ')}`);
    expect(violation?.fault).toContain(finds);
  });

  it('has a variant without each guard', () => {
    const left = new Set(mutants.flatMap(({ without }) => without));
    expect([...writtenGuards, ...amendments, ...assumptions].filter((guard) => !left.has(guard))).toEqual([]);
  });
});
