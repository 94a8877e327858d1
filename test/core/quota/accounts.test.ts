import { expect, it, onTestFinished, vi } from 'vitest';
import { type AccountReasons, QuotaAccount } from '../../../src/core/quota/account.ts';
import { QuotaAccounts } from '../../../src/core/quota/accounts.ts';

const reasons: AccountReasons = {
  sessions: 'quota_sessions',
  processes: 'quota_processes',
  streams: 'quota_streams',
  bytes: 'quota_bytes',
  requests: 'quota_requests',
  starts: 'quota_starts',
};

function createFixture() {
  vi.useFakeTimers();
  onTestFinished(() => void vi.useRealTimers());
  const accounts = new QuotaAccounts(() => new QuotaAccount({ starts: { burst: 1, everyMs: 5_000 } }, reasons));
  return { accounts, of: (subject: string) => accounts.accountFor({ issuer: '', subject, client: '' }) };
}

it('[P8] accounts of which nothing is in use are forgotten, and no others', () => {
  const { accounts, of } = createFixture();
  const kept = (['sessions', 'processes', 'streams', 'bytes'] as const).map((what) => {
    const account = of(what);
    account[what] = 1;
    return [what, account] as const;
  });
  for (let n = 0; n < 100_000; n++) of(`${n}`);
  expect(accounts.size).toBeLessThan(1_010);
  for (const [what, account] of kept) expect(of(what)).toBe(account);
});

it('an account that was forgotten is not used again, whoever asks', () => {
  const { accounts, of } = createFixture();
  const principal = { issuer: '', subject: 'one', client: '' };
  const forgotten = accounts.accountFor(principal);
  for (let n = 0; n < 2_000; n++) of(`${n}`);
  const account = of('one');
  expect(account).not.toBe(forgotten);
  expect(accounts.accountFor(principal)).toBe(account);
  expect(accounts.accountFor(principal)).toBe(account);
});

it('accounts are kept as long as their rates are not paid, since who was forgotten could begin anew', () => {
  const { accounts, of } = createFixture();
  const used = Array.from({ length: 2_000 }, (_, n) => {
    const account = of(`${n}`);
    account.starts.use(1, performance.now());
    return account;
  });
  for (let n = 0; n < 10_000; n++) of(`other ${n}`);
  expect(used.filter((account, n) => of(`${n}`) === account).length).toBe(2_000);
  vi.advanceTimersByTime(5_001);
  for (let n = 0; n < 20_000; n++) of(`another ${n}`);
  expect(accounts.size).toBeLessThan(10_000);
});

it('[P8] accounts of users who have started a process are dropped once the start is paid', () => {
  const { accounts, of } = createFixture();
  for (let n = 0; n < 10_000; n++) {
    of(`${n}`).starts.use(1, performance.now());
    vi.advanceTimersByTime(5_001);
  }
  expect(accounts.size).toBeLessThan(1_010);
});
