using System;
using System.Collections.Generic;
using System.Linq;
using System.Threading.Tasks;
using Assay.Client.Tests;

// Runs the tests; started by `npm run clients`. Uses no test framework, so it also runs where no packages can be
// downloaded.
IEnumerable<(string Name, Func<Task> Test)> tests = PackageTests.All().Concat(MediaTests.All()).Concat(await Cases.AllAsync());
int passed = 0;
List<string> failed = new();
foreach ((string name, Func<Task> test) in tests)
{
    try
    {
        await test();
        passed++;
    }
    catch (Exception error)
    {
        failed.Add(name);
        Console.Error.WriteLine($"FAILED {name}: {error}");
    }
}

Console.WriteLine($"{passed} passed, {failed.Count} failed on {System.Runtime.InteropServices.RuntimeInformation.FrameworkDescription}");
return failed.Count == 0 && passed > 20 ? 0 : 1;
