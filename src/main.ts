#!/usr/bin/env node
import { runCommand } from './app/commands/run-command.ts';

await runCommand();
