#!/usr/bin/env node
import '../dist/standard-streams.js';

await import('../dist/main.js');
