import { setKernel } from '../../../src/protocol/json/kernel/choose-kernel.ts';
import { ValueKernel } from '../../../src/protocol/json/kernel/value-kernel.ts';

// Every text goes through the kernel, and windows cut most tokens of the larger ones.
setKernel(new ValueKernel({ minBytes: 1, windowBytes: 64 }));
