import { pino } from 'pino';
import { afterEach, expect, it, vi } from 'vitest';
import { chooseScanner } from '../../src/app/choose-scanner.ts';
import { chooseKernel, kernelFor } from '../../src/protocol/json/kernel/choose-kernel.ts';

const large = 1_000;

afterEach(() => {
  vi.unstubAllGlobals();
  chooseKernel('auto');
});

/** The lines that a choice logs. */
function linesOf(environment: Record<string, string>): { level: number; msg: string; why?: string }[] {
  const lines: string[] = [];
  const logger = pino({ level: 'debug' }, { write: (line: string) => lines.push(line) });
  chooseScanner(environment, logger);
  return lines.map((line) => JSON.parse(line));
}

it.each([[{}], [{ GANGWAY_JSON_KERNEL: '' }], [{ GANGWAY_JSON_KERNEL: 'auto' }], [{ GANGWAY_JSON_KERNEL: 'on' }]])(
  'scans with WebAssembly for %j, and says so at debug',
  (environment) => {
    expect(linesOf(environment)).toMatchObject([{ level: 20, msg: 'large JSON values are scanned with WebAssembly' }]);
    expect(kernelFor(large)).toBeDefined();
  },
);

it('scans without WebAssembly if it is turned off, and says why at debug', () => {
  expect(linesOf({ GANGWAY_JSON_KERNEL: 'off' })).toMatchObject([{ level: 20, why: 'it is turned off' }]);
  expect(kernelFor(large)).toBeUndefined();
});

it('scans without WebAssembly where there is none, and refuses to start if it is required', () => {
  vi.stubGlobal('WebAssembly', undefined);
  expect(linesOf({})).toMatchObject([{ level: 20, why: 'WebAssembly is disabled' }]);
  expect(kernelFor(large)).toBeUndefined();
  expect(() => linesOf({ GANGWAY_JSON_KERNEL: 'on' })).toThrow('WebAssembly is disabled');
});

it('refuses another value', () => {
  expect(() => linesOf({ GANGWAY_JSON_KERNEL: 'yes' })).toThrow('GANGWAY_JSON_KERNEL must be auto, on, off, not yes');
});
