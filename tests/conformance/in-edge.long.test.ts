import { playAllIn } from './play.ts';

playAllIn('edge');
