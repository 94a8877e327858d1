// The code of every start, which the build joins in one file. The order matters: what starts servers comes up first.
import './app/prepare-starter.ts';

export { runCommand } from './app/commands/run-command.ts';
export { features } from './features.ts';
