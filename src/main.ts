#!/usr/bin/env node
import { main } from './app/main.ts';

await main();
