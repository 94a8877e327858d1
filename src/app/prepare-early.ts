import { prepareStarter } from './prepare-starter.ts';

// A server's command follows `--`. What starts it comes up while the rest of the program is still read.
if (process.argv.includes('--')) prepareStarter(process.env);
