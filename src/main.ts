#!/usr/bin/env node
import { main } from './app/commands/run-command.ts';

await main();
