test_that("a release is made, saved, read back and stated", {
  needs_python()
  set.seed(1)
  data <- complete_table()
  path <- tempfile(fileext = ".json")
  expect_message(dp_ledger(path, dataset = "test", budget = 1.5), "1.5")
  release <- dp_release(data, 1, ledger = path)
  expect_s3_class(release, "dp_release")
  expect_equal(release$variables, names(data))
  expect_equal(release$n, nrow(data))
  expect_true(release$secure)
  expect_equal(nrow(as.data.frame(release)), 3)
  expect_output(print(release), "epsilon = 1")
  expect_output(summary(release), "substitute one\\s+row")
  file <- dp_write_release(release, tempfile(fileext = ".json"))
  expect_identical(dp_read_release(file), release)
  error <- expect_error(dp_release(data, 1, ledger = path), class = "ReleaseExists")
  expect_match(conditionMessage(error), basename(file), fixed = TRUE)
  error <- expect_error(dp_release(data, 1, ledger = path, again = TRUE), class = "BudgetExceededError")
  expect_match(conditionMessage(error), "0.5")
})

test_that("a ledger by zCDP takes Gaussian noise", {
  needs_python()
  set.seed(2)
  path <- tempfile(fileext = ".json")
  expect_message(dp_ledger(path, dataset = "test", budget = 2, delta = 1e-6, accounting = "zcdp"), "by zCDP")
  release <- dp_release(complete_table(), 1, mechanism = "gaussian", delta = 1e-6, ledger = path)
  expect_match(release$statement, "discrete Gaussian")
})

test_that("set.seed does not reach the noise", {
  needs_python()
  set.seed(1)
  data <- complete_table(2000)
  noise <- function(seed) {
    set.seed(seed)
    suppressWarnings(dp_release(data, 0.01))$counts$noisy_count
  }
  expect_false(identical(noise(1), noise(1)))
})

test_that("no ledger is warned of, and refusals keep R's words", {
  needs_python()
  data <- complete_table()
  expect_warning(dp_release(data, 1), class = "no_ledger")
  expect_error(dp_release(data, -1), class = "ArgumentError")
  expect_error(suppressWarnings(dp_release(data, 1, columns = c("Kcal", "Grani"))), class = "UnknownNameError")
  data$Kcal[7] <- NA
  expect_error(suppressWarnings(dp_release(data, 1)), "'Kcal': 1 missing")
  expect_error(dp_write_release(data, tempfile()), "expected a dp_release")
})

test_that("statistic and noise follow the plan, and can be named", {
  needs_python()
  set.seed(1)
  data <- complete_table()
  expect_output(print(suppressWarnings(dp_release(data, 1))), "concordance counts.*linf")
  paper <- suppressWarnings(dp_release(data, 1, statistic = "quadrant", mechanism = "geometric"))
  expect_output(print(paper), "quadrant counts.*geometric")
  gaussian <- suppressWarnings(dp_release(data, 1, mechanism = "gaussian", delta = 1e-6))
  expect_match(gaussian$statement, "1e-06")
  data$Grain <- data$Grain > 0
  expect_output(print(suppressWarnings(dp_release(data, 1))), "concordance and quadrant counts")
  data$Sugar <- round(data$Sugar)
  expect_silent(mixed <- suppressWarnings(dp_release(data, 1, coarse = c("Grain", "Sugar"))))
  expect_error(suppressWarnings(dp_release(data, 1, mechanism = "laplace")), class = "UnknownNameError")
})

test_that("a plan needs no data", {
  needs_python()
  plan <- dp_plan(p = 7, n = 5820, epsilon = 1)
  expect_equal(plan$mechanism, "linf")
  expect_lt(plan$length, 0.1)
  expect_lt(dp_plan(p = 7, n = 5820, length = 0.1)$epsilon, 1)
  paper <- dp_plan(p = 5, n = 500, epsilon = 1, statistic = "quadrant", mechanism = "geometric")
  expect_equal(paper$length, 0.6, tolerance = 0.1)
  expect_error(dp_plan(p = 7, n = 5820), class = "ArgumentError")
  expect_error(dp_plan(p = 2.5, n = 100, epsilon = 1), "whole number")
})

test_that("ids and key seeds decide ties, not the order of rows", {
  needs_python()
  set.seed(3)
  data <- data.frame(id = 1:400 * 7, a = rep(0:2, length.out = 400), b = rep(0:4, each = 80))
  mean_count <- function(data, ...) {
    suppressWarnings(dp_release(data, 1e6, id = "id", ...))$counts$noisy_count
  }
  shuffled <- data[sample(400), ]
  expect_equal(mean_count(data), mean_count(shuffled)) # no noise to speak of at this epsilon
  seeds <- vapply(1:8, function(seed) mean_count(data, key_seed = seed), 1)
  expect_gt(length(unique(seeds)), 1)
})
