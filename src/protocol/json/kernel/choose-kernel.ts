import { ValueKernel } from './value-kernel.ts';

/** The scanner of large values: the kernel if it can run, always the kernel, or always TypeScript. */
export const kernelModes = ['auto', 'on', 'off'] as const;
export type KernelMode = (typeof kernelModes)[number];

/** The choice; undefined before it was made. */
let chosen: { readonly kernel: ValueKernel | undefined } | undefined;

/** Uses this kernel for all texts from now on, or none. */
export function setKernel(kernel: ValueKernel | undefined): void {
  chosen = { kernel };
}

/**
 * Chooses between the kernel and the TypeScript scanner. The program calls this once, at startup. Without such a call,
 * the first text chooses.
 * @param mode `on` throws if the kernel cannot run
 * @returns the reason why the kernel does not run; undefined if it does
 */
export function chooseKernel(mode: KernelMode): Error | undefined {
  setKernel(undefined);
  if (mode === 'off') return new Error('it is turned off');
  try {
    setKernel(new ValueKernel());
    return undefined;
  } catch (cause) {
    if (mode === 'on') throw cause;
    return cause as Error;
  }
}

/** The kernel, if it runs and a text of this size is worth it. */
export function kernelFor(bytes: number): ValueKernel | undefined {
  if (chosen === undefined) chooseKernel('auto');
  const kernel = chosen?.kernel;
  return kernel !== undefined && bytes >= kernel.minBytes ? kernel : undefined;
}
