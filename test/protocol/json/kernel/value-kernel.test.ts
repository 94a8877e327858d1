import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { chooseKernel, kernelFor, setKernel } from '../../../../src/protocol/json/kernel/choose-kernel.ts';
import { escapesPerValue, type KernelOutcome, ValueKernel } from '../../../../src/protocol/json/kernel/value-kernel.ts';
import {
  defaultLimits,
  SteppedScan,
  scanJson,
  scanList,
  scanMember,
  scanObject,
} from '../../../../src/protocol/json/scan.ts';

/** Node.js has it, and its types do not. */
const { WebAssembly } = globalThis as unknown as {
  WebAssembly: { Instance: new (compiled: object) => { exports: { memory: { buffer: ArrayBuffer } } } };
};

const anyDepth = Number.POSITIVE_INFINITY;
const anyWork = Number.POSITIVE_INFINITY;

/** A value with every token, and with each token long enough to be cut in several places. */
const everything =
  '[ -0.25e-12 ,[true,false,null], {"key\\n\\u00e9\\"" : "\\\\\\\\\\"\\ud83c\\udf0d", "":{} } ,0,-7,1E+5,[[]],"é€🌍",12345678901 ]';

function outcomeOf(kernel: ValueKernel, text: string, limit = anyDepth): KernelOutcome {
  const outcome = kernel.skip(Buffer.from(text), 0, limit, anyWork);
  kernel.release();
  return outcome;
}

describe('ValueKernel', () => {
  it('finds the end of a value, however windows cut it', () => {
    for (let windowBytes = 16; windowBytes <= 160; windowBytes += 1) {
      const kernel = new ValueKernel({ minBytes: 1, windowBytes });
      for (let before = 0; before < 20; before += 1) {
        const text = Buffer.from(`${' '.repeat(before)}${everything} ,1`);
        expect(kernel.skip(text, before, anyDepth, anyWork)).toBe('skipped');
        expect(kernel.at).toBe(before + Buffer.byteLength(everything));
        expect(kernel.work).toBe(16 * escapesPerValue + 8);
      }
    }
  });

  it('refuses every truncation of a value, however windows cut it', () => {
    const bytes = Buffer.from(everything);
    for (const windowBytes of [16, 17, 23, 64, 4_096]) {
      const kernel = new ValueKernel({ minBytes: 1, windowBytes });
      for (let end = 0; end < bytes.length; end += 1)
        expect(kernel.skip(bytes.subarray(0, end), 0, anyDepth, anyWork), `${end} of ${windowBytes}`).toBe('not_json');
    }
  });

  it('reads nothing of a longer text that was in the window before', () => {
    const kernel = new ValueKernel();
    const long = Buffer.from(`[${'"]"},'.repeat(100)}`.replaceAll('}', ''));
    for (const text of ['"', '"a', '[1', '{"a":1', '-', '1.', '1e', 'tru', '"\\', '"\\u00', '[ ']) {
      kernel.skip(long, 0, anyDepth, anyWork);
      expect(kernel.skip(Buffer.from(text), 0, anyDepth, anyWork), text).toBe('not_json');
    }
  });

  it.each([
    ['the limit', 3, 3, 'skipped'],
    ['one more', 4, 3, 'too_deep'],
    ['as many brackets as it has room for', 8_192, anyDepth, 'skipped'],
    ['one bracket more', 8_193, anyDepth, 'too_many_open'],
  ])('counts depth: %s', (_, depth, limit, expected) => {
    const text = `${'['.repeat(depth)}${']'.repeat(depth)}`;
    expect(outcomeOf(new ValueKernel(), text, limit)).toBe(expected);
  });

  it('hands over the open brackets', () => {
    const kernel = new ValueKernel();
    kernel.skip(Buffer.from('{"a":['.repeat(5_000)), 0, anyDepth, anyWork);
    expect(kernel.at).toBe(4_096 * 6);
    expect(Buffer.from(kernel.openBrackets).toString()).toBe('}]'.repeat(4_096));
  });

  it('continues a paused value after others were skipped', () => {
    const kernel = new ValueKernel({ minBytes: 1, windowBytes: 16 });
    const text = Buffer.from(everything);
    let outcome = kernel.skip(text, 0, anyDepth, 0);
    let pauses = 0;
    for (; outcome === 'paused'; pauses += 1) {
      const paused = kernel.pause();
      expect(outcomeOf(kernel, `{"other":${everything}}`)).toBe('skipped');
      outcome = kernel.resume(text, paused, 0);
    }
    expect(pauses).toBeGreaterThan(5);
    expect([outcome, kernel.at]).toEqual(['skipped', text.length]);
  });
});

describe("the kernel's memory", () => {
  let memory: Buffer;

  beforeEach(() => {
    const { Instance } = WebAssembly;
    vi.spyOn(WebAssembly, 'Instance').mockImplementation(function instance(compiled: object) {
      const made = new Instance(compiled);
      memory = Buffer.from(made.exports.memory.buffer);
      return made;
    });
    setKernel(new ValueKernel());
  });

  afterEach(() => {
    vi.restoreAllMocks();
    chooseKernel('auto');
  });

  const secret = 'the-secret-word';
  const withSecret = (end: string, count = 100): Buffer =>
    Buffer.from(`{"result":{"a":["${secret.repeat(count)}"${end}`);

  it.each([
    ['a message', () => scanJson(withSecret(']},"id":1}'), 100)],
    ['a message of several windows', () => scanJson(withSecret(']},"id":1}', 10_000), 100)],
    ['a message that is not JSON', () => scanJson(withSecret('}'), 100)],
    ['a message that is too deep', () => scanJson(withSecret(',[[[]]]]}}'), 3)],
    ['an object', () => scanObject(withSecret(']}}'))],
    ['a member', () => scanMember(withSecret(']}}'), 'result')],
    ['a list', () => scanList(Buffer.from(`["${secret.repeat(100)}"]`))],
  ])('[P12] contains nothing of %s after its scan', (_, scan) => {
    const fill = vi.spyOn(Uint8Array.prototype, 'fill');
    scan();
    expect(fill).toHaveBeenCalled();
    expect(memory.includes(secret)).toBe(false);
  });

  it('[P12] contains nothing of a message between the steps of its scan', () => {
    const text = withSecret(`,${'"x",'.repeat(100_000)}0]}}`);
    const scan = new SteppedScan(text, 100, () => undefined, defaultLimits, 1_000);
    let steps = 0;
    for (; scan.step() === undefined; steps += 1) expect(memory.includes(secret)).toBe(false);
    expect(steps).toBeGreaterThan(1);
  });

  it('is what this test believes: a text is there until its release', () => {
    const kernel = new ValueKernel();
    kernel.skip(withSecret(']}}'), 0, 100, anyWork);
    expect(memory.includes(secret)).toBe(true);
    kernel.release();
    expect(memory.includes(secret)).toBe(false);
  });
});

describe('chooseKernel', () => {
  afterEach(() => {
    vi.unstubAllGlobals();
    chooseKernel('auto');
  });

  it('uses the kernel for texts that are worth it', () => {
    expect(chooseKernel('auto')).toBeUndefined();
    expect(kernelFor(511)).toBeUndefined();
    expect(kernelFor(512)).toBeInstanceOf(ValueKernel);
  });

  it('falls back to TypeScript without WebAssembly or SIMD, and only then', () => {
    const text = Buffer.from(`{"id":1,"result":${everything.repeat(1)}${' '.repeat(1_000)}}`);
    const expected = scanJson(text, 100);
    vi.stubGlobal('WebAssembly', undefined);
    expect(chooseKernel('auto')?.message).toBe('WebAssembly is disabled');
    expect(kernelFor(1_000)).toBeUndefined();
    expect(scanJson(text, 100)).toEqual(expected);
    expect(() => chooseKernel('on')).toThrow('WebAssembly is disabled');
    vi.stubGlobal('WebAssembly', {
      Module: class {
        constructor() {
          throw new Error('Wasm SIMD unsupported');
        }
      },
    });
    expect(chooseKernel('auto')?.message).toBe('Wasm SIMD unsupported');
    expect(scanJson(text, 100)).toEqual(expected);
    expect(() => chooseKernel('on')).toThrow('Wasm SIMD unsupported');
  });

  it('can be turned off', () => {
    expect(chooseKernel('off')?.message).toBe('it is turned off');
    expect(kernelFor(1_000)).toBeUndefined();
  });
});
