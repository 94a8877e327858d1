import { setKernel } from '../../../src/protocol/json/kernel/choose-kernel.ts';

setKernel(undefined);
